"""Probability of the right choice, from log-likelihoods of the choices."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["gold_probability", "is_consistent"]


def gold_probability(
    logliks: Sequence[float],
    gold: Sequence[int],
    *,
    lengths: Sequence[int] | None = None,
) -> float | None:
    """Share of the right choices in the softmax over all of them.

    Args:
        logliks: Log-likelihood of each choice, in nats.
        gold: Positions of the right choices; the shares of several add up.
        lengths: Length of each choice; log-likelihoods are divided by it, as
            ``acc_norm`` (characters) and ``acc_bytes`` do.

    Returns:
        The share, or None where it cannot be told: no choices, a position that is not
        there, an empty choice, or values that are not finite.
    """
    if not logliks or not gold or not all(0 <= g < len(logliks) for g in gold):
        return None
    if lengths is not None:
        if len(lengths) != len(logliks) or min(lengths) < 1:
            return None
        logliks = [x / length for x, length in zip(logliks, lengths, strict=True)]
    top = max(logliks)
    if not math.isfinite(top) or any(math.isnan(x) for x in logliks):
        return None
    terms = [math.exp(x - top) for x in logliks]
    return sum(terms[g] for g in set(gold)) / sum(terms)


def is_consistent(
    logliks: Sequence[float], gold: Sequence[int], correct: float
) -> bool:
    """Whether the likeliest choice being right agrees with the logged accuracy.

    A tie for the first place agrees with anything: who wins it is up to the harness.
    So does a value that is not a number.
    """
    if any(math.isnan(x) for x in logliks):
        return True
    top = max(logliks)
    best = [i for i, x in enumerate(logliks) if x == top]
    return len(best) > 1 or (best[0] in set(gold)) == bool(correct)
