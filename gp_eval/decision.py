"""Is the score at least 0.70? Stopping as soon as the posterior says yes or no."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:  # the command line reads statements without torch
    from torch import Tensor

    from gp_eval.data import References
    from gp_eval.models.protocol import Performance

__all__ = ["Decision", "Relation", "check_threshold"]

Relation = Literal[">=", "<=", ">", "<"]

_STATEMENT = re.compile(
    r"\s*score\s*(>=|<=|>|<)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
)
_ROUNDING = 1e-12
"""Relative difference below which a mean of all scores equals the threshold."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    r"""A statement about the benchmark score and when it counts as decided.

    It is decided once :math:`P(R \ge t)`, for ``score>=t``, lay above ``level`` after
    each of the last ``window`` items (the statement holds), or below ``1 - level``
    after each of them (it does not). Looking again after every item gives chance many
    occasions, and a posterior that is too narrow uses them; the window is what holds it
    back. Its default was measured on four benchmarks with ``bayesame`` and ``rs-mean``:
    with one look up to a third of the decisions about thresholds 0.01 from the score
    were wrong, with 30 a tenth at most, and 4 % at most from a distance of 0.02 on. A
    minimum ``n`` on top, or a window that grows with ``n``, gained nothing at the same
    number of items. ``gp-eval simulate --until`` prints the rates on your references.

    A variance of exactly 0 while items are left is that of a sample of equal scores,
    not of certainty, and decides nothing. With all ``N`` items the verdict is that of
    their mean, whatever the model.

    Attributes:
        relation: How score and threshold are compared.
        threshold: ``t``, in score units.
        level: The posterior probability to exceed, between 0.5 and 1.
        window: Number of last probabilities, one an item, that must all agree; nothing
            is decided before.
    """

    relation: Relation
    threshold: float
    level: float = 0.95
    window: int = 30

    def __post_init__(self) -> None:
        """Check the values."""
        if self.relation not in get_args(Relation):
            raise ValueError(
                f"relation: expected one of {get_args(Relation)}, got {self.relation!r}"
            )
        if not math.isfinite(self.threshold):
            raise ValueError(
                f"threshold: expected a finite number, got {self.threshold!r}"
            )
        if not 0.5 < self.level < 1.0:
            raise ValueError(f"level: expected 0.5 < level < 1, got {self.level!r}")
        if self.window < 1:
            raise ValueError(f"window: expected at least 1, got {self.window!r}")

    @classmethod
    def parse(
        cls, statement: str, *, level: float = 0.95, window: int = 30
    ) -> Decision:
        """The decision of a statement such as ``"score>=0.70"``.

        Args:
            statement: ``score``, one of ``>=``, ``<=``, ``>``, ``<``, and a number.
            level: See the attributes.
            window: See the attributes.

        Raises:
            ValueError: For anything else.

        Example:
            >>> Decision.parse("score>=0.70").threshold
            0.7
        """
        match = _STATEMENT.fullmatch(statement)
        if match is None:
            hint = (
                "; quote it, for > and < mean files to a shell"
                if statement.strip() == "score"
                else ""
            )
            raise ValueError(
                "until: expected 'score>=NUMBER' (or <=, >, <) in score units, got "
                f"{statement!r}{hint}"
            )
        relation: Relation = match[1]  # type: ignore[assignment]
        return cls(
            relation=relation,
            threshold=float(match[2]),
            level=level,
            window=window,
        )

    @property
    def statement(self) -> str:
        """The statement, as :meth:`parse` takes it."""
        return f"score{self.relation}{self.threshold!r}"

    def holds(self, score: float) -> bool:
        """Whether the statement is true of a known score.

        A mean of decimals is rounded, so what is within ``1e-12`` of the threshold
        (relative to it, if that is above 1) is equal to it.
        """
        gap = score - self.threshold
        if abs(gap) <= _ROUNDING * max(1.0, abs(self.threshold)):
            return self.relation in (">=", "<=")
        return (gap > 0.0) == (self.relation in (">=", ">"))

    def probability(self, belief: Performance) -> Tensor:
        """Posterior probability of the statement, of the shape of the belief.

        NaN where the variance is 0 (or NaN): what decides then is :meth:`holds`.
        """
        above = belief.probability_above(self.threshold)
        above = above.where(belief.variance > 0.0, math.nan)
        return above if self.relation in (">=", ">") else 1.0 - above

    def verdict(self, probabilities: Sequence[float], *, batch: int = 1) -> bool | None:
        """Whether the statement holds, ``None`` while that is not decided.

        Where an iteration evaluates a batch, the window is over the probabilities after
        each, as in :meth:`gp_eval.StoppingRule.met`.

        Args:
            probabilities: Of the statement, after each evaluated item, the newest last.
            batch: Items that an iteration evaluates, ``|A|``.
        """
        window, n = math.ceil(self.window / batch), len(probabilities)
        if n % batch or n < window * batch:
            return None
        last = probabilities[n - 1 - (window - 1) * batch :: batch]
        if all(p > self.level for p in last):
            return True
        if all(1.0 - p > self.level for p in last):
            return False
        return None


def check_threshold(decision: Decision, references: References) -> None:
    """Refuse a threshold that no score of a reference reaches on any item.

    Such as 70 for scores between 0 and 1: it would be decided at once.

    Raises:
        ValueError: With the range of the reference scores.
    """
    known = references.scores[~references.scores.isnan()]
    low, high = float(known.min()), float(known.max())
    if not low <= decision.threshold <= high:
        raise ValueError(
            f"until: {decision.statement}: the references score between {low:g} and "
            f"{high:g} on every item; expected a threshold in these units"
        )
