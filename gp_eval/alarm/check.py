"""Whether a target's scores so far are like those of the references."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gp_eval.alarm.tails import tail_probability

__all__ = ["LEVEL", "RangeCheck", "Reason", "check_range"]

Reason = Literal["above", "below", "order"]

LEVEL = 0.01
"""Tail probability at which each of the three tests raises the alarm.

Over a whole run, with looks at 10, 15, 23 ... items, 2 % of targets that are like the
references raise one (``benchmarks/off_range.py``, mean over 14 tables; at most 6 %).
"""


@dataclass(frozen=True)
class RangeCheck:
    r"""A target beside the references, on the items evaluated so far.

    All three probabilities say how likely a further reference would lie so far out,
    see :func:`~gp_eval.alarm.tails.tail_probability`.

    Attributes:
        n: Evaluated items.
        n_references: References that have a score on all of them.
        mean: Mean score of the target on these items, in score units.
        lowest: Lowest mean score of a reference on them.
        highest: Highest one.
        innovation: Standardised mean innovation :math:`(\bar s - \bar\mu) / (\sigma
            \sqrt{1 + 1/K})`, with :math:`\bar\mu` and :math:`\sigma` the mean and
            standard deviation of the references' mean scores on the same items;
            ``None`` where they are all the same.
        correlation: Of the target's scores with the references' mean scores; ``None``
            where one of them is constant.
        lowest_correlation: Lowest one of a reference with the mean of the others.
        p_above: Tail probability of lying so far above the references.
        p_below: The same below.
        p_order: The same for so low a correlation.
    """

    n: int
    n_references: int
    mean: float
    lowest: float
    highest: float
    innovation: float | None
    correlation: float | None
    lowest_correlation: float | None
    p_above: float
    p_below: float
    p_order: float

    @property
    def reason(self) -> Reason | None:
        """What is out of range at :data:`LEVEL`, the level of the score first.

        Only what lies outside all references is, however many there are.
        """
        if self.p_above <= LEVEL and self.mean > self.highest:
            return "above"
        if self.p_below <= LEVEL and self.mean < self.lowest:
            return "below"
        if self.correlation is None or self.lowest_correlation is None:
            return None
        outside = self.correlation < self.lowest_correlation
        return "order" if self.p_order <= LEVEL and outside else None

    def seen(self, about: Reason) -> str:
        """What was seen, in words, without what it means."""
        others = f"{self.n_references} references"
        if about == "order":
            if self.correlation is None or self.lowest_correlation is None:
                return f"on {self.n} items its scores are all the same"
            lower = self.correlation < self.lowest_correlation
            return (
                f"on {self.n} items its scores correlate with the references' mean "
                f"scores by {self.correlation:.2f}, "
                + (
                    f"less than those of all {others}"
                    if lower
                    else f"as of the {others}"
                )
                + f" ({self.lowest_correlation:.2f} and up)"
            )
        scored = f"on {self.n} items it scores {self.mean:.3f}"
        if self.mean > self.highest:
            return f"{scored}, above all {others} (the best has {self.highest:.3f})"
        if self.mean < self.lowest:
            return f"{scored}, below all {others} (the worst has {self.lowest:.3f})"
        return (
            f"{scored}, within the {others} ({self.lowest:.3f} to {self.highest:.3f})"
        )


def check_range(scores: Tensor, references: Tensor) -> RangeCheck:
    r"""Compare a target with the references on the same items, without any model.

    What is compared are mean scores and correlations on the evaluated items, the
    target's and those of every reference. If the target is like a reference and items
    were chosen without looking at its scores, they are exchangeable, with the noise of
    having few items in all of them alike.

    *Level*: the mean score. *Order*: the correlation with the references' mean scores,
    of a reference with the mean of the others, as Fisher's :math:`z`; only low values
    count. It falls where items are out of order or scores flipped.

    Args:
        scores: Scores of the target on the evaluated items, shape ``n``, at least 2.
        references: Scores of the references on them, ``n x K``; those with missing
            cells there are left out.

    Raises:
        ValueError: For fewer than 2 items, or shapes that do not fit.
    """
    n = scores.shape[0]
    if n < 2 or references.ndim != 2 or references.shape[0] != n:
        raise ValueError(
            "scores, references: expected shapes n and n x K with n >= 2, got "
            f"{tuple(scores.shape)} and {tuple(references.shape)}"
        )
    references = references[:, ~references.isnan().any(0)]
    if not references.shape[1]:
        raise ValueError("references: expected one that has all evaluated items")
    means, mean = references.mean(0), scores.mean()
    best, worst = int(means.argmax()), int(means.argmin())
    correlation, others = _correlations(scores, references)
    return RangeCheck(
        n=n,
        n_references=references.shape[1],
        mean=float(mean),
        lowest=float(means[worst]),
        highest=float(means[best]),
        innovation=_innovation(mean, means),
        correlation=correlation,
        lowest_correlation=float(others.min()) if others.shape[0] else None,
        p_above=tail_probability(
            float(mean), means, noise=_paired_error(scores, references[:, best])
        ),
        p_below=tail_probability(
            -float(mean), -means, noise=_paired_error(scores, references[:, worst])
        ),
        p_order=_order_probability(correlation, others, n),
    )


def _innovation(mean: Tensor, means: Tensor) -> float | None:
    n_references = means.shape[0]
    spread = float(means.std()) if n_references > 1 else 0.0
    if spread == 0.0:
        return None
    return float(mean - means.mean()) / (spread * math.sqrt(1.0 + 1.0 / n_references))


def _paired_error(left: Tensor, right: Tensor) -> float:
    """Standard error of a mean difference over the same items."""
    return float((left - right).std()) / math.sqrt(left.shape[0])


def _correlations(scores: Tensor, references: Tensor) -> tuple[float | None, Tensor]:
    """The target's with the references' mean, and each reference's with the others'.

    Undefined ones are ``None`` and left out.
    """
    n_references = references.shape[1]
    total = references.sum(1, keepdim=True)
    of_target = _correlation(scores.unsqueeze(-1), total / n_references)
    rest = (total - references) / max(n_references - 1, 1)
    of_references = _correlation(references, rest)
    known = of_references[~of_references.isnan()]
    target = float(of_target[0])
    return (None if math.isnan(target) else target), known


def _correlation(left: Tensor, right: Tensor) -> Tensor:
    """Pearson's, column by column; NaN where a column is constant."""
    constant = (left.amax(0) == left.amin(0)) | (right.amax(0) == right.amin(0))
    left, right = left - left.mean(0), right - right.mean(0)
    norm = left.square().sum(0).mul(right.square().sum(0)).sqrt()
    value = (left * right).sum(0) / torch.where(constant, 1.0, norm)
    return torch.where(constant, torch.nan, value).clamp(-1.0, 1.0)


_NEARLY_ONE = 0.999
"""Correlations are cut off there: Fisher's z of 1 is infinite."""


def _order_probability(correlation: float | None, others: Tensor, n: int) -> float:
    if correlation is None or n < 4 or not others.shape[0]:
        return 1.0
    limits = -_NEARLY_ONE, _NEARLY_ONE
    z = math.atanh(min(max(correlation, limits[0]), limits[1]))
    return tail_probability(
        -z, -others.clamp(*limits).atanh(), noise=1.0 / math.sqrt(n - 3)
    )
