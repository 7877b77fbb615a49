"""A score table without the general level of models: what is left is order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gp_eval.diagnosis.permutation import (
    Correlations,
    permutation_correlations,
)

__all__ = ["Table", "agreement_p_value", "reliability"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_ROUNDS = 10_000


@dataclass(frozen=True)
class Table:
    """Scores of ``K`` models on ``N`` items, with gaps.

    Attributes:
        scores: ``N x K``; NaN marks a missing cell.
    """

    scores: Floats

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Which cells are there, ``N x K``."""
        return ~np.isnan(self.scores)

    @property
    def transposed(self) -> Table:
        """Models as rows and items as columns."""
        return Table(np.ascontiguousarray(self.scores.T))

    @cached_property
    def levels(self) -> Floats:
        r"""Level of each model in score units, shape ``K``.

        The :math:`a_k` of the least-squares fit :math:`x_{ik} \approx a_k + b_i` with
        :math:`\sum_i b_i = 0`. Without gaps it is the mean score; with gaps it does
        not punish a model for having run the harder items.
        """
        levels, items = self._means(0), np.zeros(len(self.scores))
        if self.present.all():
            return levels
        for _ in range(_ROUNDS):
            items = self._means(1, minus=levels[None, :])
            items = items - items.mean()
            new = self._means(0, minus=items[:, None])
            moved, levels = np.abs(new - levels).max(), new
            if moved <= 1e-12 * max(1.0, float(np.abs(levels).max())):
                break
        return levels

    def _means(self, axis: int, *, minus: Floats | float = 0.0) -> Floats:
        kept = np.where(self.present, self.scores - minus, 0.0)
        return kept.sum(axis) / np.maximum(self.present.sum(axis), 1)

    def means(self, members: Indices) -> Floats:
        """Mean over ``members`` of score minus level, shape ``N``; NaN if none has it.

        Args:
            members: Positions of models.
        """
        kept = np.where(self.present, self.scores - self.levels, 0.0)[:, members]
        counts = self.present[:, members].sum(1)
        return np.where(counts > 0, kept.sum(1) / np.maximum(counts, 1), np.nan)

    def rest(self, members: Indices) -> Floats:
        """The same for each model without itself, ``N x K``."""
        kept = np.where(self.present, self.scores - self.levels, 0.0)
        inside = np.zeros(self.scores.shape[1])
        inside[members] = 1.0
        counts = (self.present @ inside)[:, None] - self.present * inside
        sums = (kept @ inside)[:, None] - kept * inside
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    def item_rest(self, members: Indices) -> Correlations:
        """Correlation over items of each model with the mean of the other members."""
        return permutation_correlations(self.scores, self.rest(members))

    def columns(self, members: Indices) -> Table:
        """Some of the models."""
        return Table(self.scores[:, members])


def reliability(table: Table) -> float:
    r"""Share of the variance of the item means that is no sampling of references.

    :math:`1 - \frac{N}{N - 1} \overline{s_i^2 / K_i} / \mathrm{var}(m_i)` with the mean
    :math:`m_i` and the variance :math:`s_i^2` over the :math:`K_i` references that
    have item :math:`i`, levels of models removed. Without gaps it is Cronbach's alpha
    of the references. NaN for fewer than 2 references or 2 items.
    """
    scores = table.scores - table.levels
    counts = table.present.sum(1)
    scores, counts = scores[counts >= 2], counts[counts >= 2]
    if len(scores) < 2:
        return float("nan")
    spread = float(np.nanmean(scores, 1).var(ddof=1))
    if spread == 0.0:
        return float("nan")
    within = float((np.nanvar(scores, 1, ddof=1) / counts).mean())
    # The levels of the models are estimated as well: a degree of freedom.
    return 1.0 - within * len(scores) / (len(scores) - 1) / spread


def agreement_p_value(table: Table) -> float:
    r"""Probability that models without a common order agree as much, one-sided.

    The statistic is the sum over pairs of models of :math:`c_{jk} = \sum_i u_{ij}
    u_{ik}` with centred scores. Over independent reorderings of each column it has
    mean 0, variance :math:`(N - 1) \sum_{j<k} s_j^2 s_k^2` and third moment
    :math:`\sum_{j<k} \mathrm{E} c_{jk}^3 + 6 (N - 1) \sum_{j<k<l} s_j^2 s_k^2 s_l^2`
    (with :math:`s^2` over ``N - 1``); the tail is Pearson's type III. For two models
    it is the permutation test of their correlation, for many that of Friedman's and
    Cochran's statistic. Gaps count as cells without deviation. NaN for fewer than 2
    models or 3 items.
    """
    from scipy.stats import pearson3

    n_items, n_models = table.scores.shape
    u = np.where(table.present, table.scores - table.levels, 0.0)
    u = u - u.mean(0)
    if n_models < 2 or n_items < 3:
        return float("nan")
    total = ((u.sum(1) ** 2).sum() - (u**2).sum()) / 2.0
    variances = (u**2).sum(0) / (n_items - 1)
    pairs, triples = _symmetric(variances)
    cubes = n_items / ((n_items - 1) * (n_items - 2)) * _symmetric((u**3).sum(0))[0]
    variance = (n_items - 1) * pairs
    if variance <= 0.0:
        return float("nan")
    skew = (cubes + 6.0 * (n_items - 1) * triples) / variance**1.5
    return float(pearson3.sf(total / np.sqrt(variance), skew))


def _symmetric(values: Floats) -> tuple[float, float]:
    """Sums of the products of all pairs and of all triples (Newton's identities)."""
    one, two, three = (float((values**power).sum()) for power in (1, 2, 3))
    return (one**2 - two) / 2.0, (one**3 - 3.0 * one * two + 2.0 * three) / 6.0
