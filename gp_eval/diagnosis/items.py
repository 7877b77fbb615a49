"""Items that tell nothing, and items that look mis-keyed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp_eval.diagnosis.permutation import Correlations, holm
from gp_eval.diagnosis.table import Table

__all__ = ["Discrimination", "discrimination", "unanimous"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_MOST = 1.0 - 1e-12
"""Where Fisher's scale ends in double precision."""


@dataclass(frozen=True)
class Discrimination:
    """Whether stronger models do better on an item, for ``N`` items.

    Attributes:
        correlations: Over models, of the scores on the item with the mean score on the
            other items.
        reversed: Significantly negative (Holm over the items).
        miskeyed: Negative, and far below what is usual on this benchmark.
    """

    correlations: Correlations
    reversed: Flags
    miskeyed: Flags


def discrimination(table: Table, *, level: float) -> Discrimination:
    """Find items on which stronger models do worse.

    Where many items are reversed, that is how the benchmark is, and no fault of single
    items. So a mis-keyed item is negative and an outlier among all items: below their
    median by more than the spread explains (on Fisher's scale, normal, with 1.4826
    times the median absolute deviation as standard deviation). One of the two must
    hold by Holm over all items, at half the level, and the other for the items that
    are left: an outlier by Holm among the reversed ones, or negative at ``level``. With
    many models the first finds more, with few models the second.

    Args:
        table: Different models that agree.
        level: Probability of one or more false alarms, for either list.
    """
    from scipy.stats import norm

    n_items, n_models = table.scores.shape
    turned = table.transposed
    everything = np.arange(n_items)
    outcome = turned.item_rest(everything)
    known = outcome.r[~np.isnan(outcome.r)]
    if n_models < 3 or not len(known):
        none = np.zeros(n_items, dtype=bool)
        return Discrimination(outcome, none, none)
    reversed_ = holm(outcome.low, level)
    z = np.arctanh(np.clip(outcome.r, -_MOST, _MOST))
    centre = np.nanmedian(z)
    spread = 1.4826 * np.nanmedian(np.abs(z - centre))
    p = norm.cdf((z - centre) / max(spread, 1e-12))
    certain = holm(outcome.low, level / 2.0)
    miskeyed = certain & holm(np.where(certain, p, np.nan), level / 2.0)
    miskeyed |= holm(p, level / 2.0) & (outcome.low <= level)
    return Discrimination(outcome, reversed_, miskeyed)


def unanimous(table: Table) -> tuple[Flags, Floats]:
    """Items on which all models scored the same, and that score; both of shape ``N``.

    Items that fewer than two models have are not counted.
    """
    low = np.min(np.where(table.present, table.scores, np.inf), 1)
    high = np.max(np.where(table.present, table.scores, -np.inf), 1)
    return (low == high) & (table.present.sum(1) >= 2), high
