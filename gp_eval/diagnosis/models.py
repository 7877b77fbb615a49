"""Models that contradict the others, or have nothing to do with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp_eval.diagnosis.permutation import Correlations, below, holm, z_quantile
from gp_eval.diagnosis.table import Table

__all__ = ["Agreement", "agreement", "weak"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Agreement:
    """How each of ``K`` models agrees with those that agree.

    Attributes:
        correlations: Item-rest correlation of each model with the mean of ``members``.
        expected: The correlation that is typical: the median over ``members`` of the
            share of the attainable correlation, times what is attainable.
        members: Models that are neither anticorrelated nor unrelated.
        anticorrelated: Significantly negative (Holm over the models).
        unrelated: Not significantly positive, and significantly below what is typical.
        distant: Positive, but significantly below half of what is typical.
    """

    correlations: Correlations
    expected: Floats
    members: Flags
    anticorrelated: Flags
    unrelated: Flags
    distant: Flags


def agreement(table: Table, *, level: float) -> Agreement:
    """Compare each model with the mean of the others, leaving out those that fail.

    The most contradictory model is left out of the mean before the others are judged,
    and so on; then those without relation. The verdict on every model is that of the
    last mean, so that none suffers from the company it was in.

    A model without relation must fail two tests: its correlation is no more than
    chance at ``level``, and it is below the typical one at ``level`` over ``K``
    (Bonferroni). The first spares models that show any order at all, however weak; the
    second those with too few items, or too few right answers, to show one.

    Args:
        table: Different models, none of them constant.
        level: Level of the tests.
    """
    n_models = table.scores.shape[1]
    members = np.ones(n_models, dtype=bool)
    while members.sum() > 2:
        outcome = table.item_rest(np.flatnonzero(members))
        negative = members & holm(np.where(members, outcome.low, np.nan), level)
        if not negative.any():
            break
        members[np.argmin(np.where(negative, outcome.r, np.inf))] = False
    while True:
        verdict = _judge(table, members, level)
        kept = members & ~verdict.unrelated
        if kept.sum() == members.sum() or kept.sum() < 2:
            return verdict
        members = kept


def _judge(table: Table, members: Flags, level: float) -> Agreement:
    outcome = table.item_rest(np.flatnonzero(members))
    share = (outcome.r / outcome.attainable)[members]
    known = share[~np.isnan(share)]
    typical = float(np.median(known)) if len(known) else np.nan
    expected = np.where(typical > 0.0, typical * outcome.attainable, np.nan)
    z = z_quantile(level, len(members))
    positive = outcome.high <= level
    anticorrelated = holm(outcome.low, level)
    missed = below(outcome.r, expected, outcome.n, z)
    unrelated = missed & ~positive & ~anticorrelated
    return Agreement(
        correlations=outcome,
        expected=expected,
        members=~anticorrelated & ~unrelated,
        anticorrelated=anticorrelated,
        unrelated=unrelated,
        distant=positive & below(outcome.r, expected / 2.0, outcome.n, z),
    )


def weak(table: Table, agreeing: Flags, *, level: float) -> Flags:
    """Models that do not score more than the weakest that agrees with the others.

    Such a model may answer at random; one that scores more cannot, for then a model
    that knows something would be below chance. "More" is a difference of means over
    the items both have, significant at ``level`` over the number of comparisons.

    Args:
        table: All models.
        agreeing: Those that agree with the others, shape ``K``; of them, those with
            half of the items of a model are compared with it.
        level: One-sided.

    Returns:
        Flags of shape ``K``.
    """
    present = table.present.astype(float)
    x = np.where(table.present, table.scores, 0.0)
    common = present.T @ present
    own = x.T @ present  # [k, w]: sum of k over the items that w has as well
    counts = np.maximum(common, 1.0)
    variance = np.maximum((x**2).T @ present / counts - (own / counts) ** 2, 0.0)
    error = np.sqrt((variance + variance.T) / counts)
    z = z_quantile(level, int(agreeing.sum()))
    more = (own - own.T) / counts > z * error
    comparable = agreeing[None, :] & (common >= 0.5 * np.diag(common)[:, None])
    flags: Flags = ~(more & comparable).any(1)
    return flags
