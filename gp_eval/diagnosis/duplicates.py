"""Models whose columns are equal, or almost equal beyond chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp_eval.diagnosis.findings import Finding
from gp_eval.diagnosis.table import Table

if TYPE_CHECKING:
    from gp_eval.diagnosis.case import Case

__all__ = ["DIFFERENCE", "difference_from_chance", "duplicate_groups", "finding"]

Floats = NDArray[np.float64]

DIFFERENCE = 0.1
"""Share of the difference of independent models below which two count as one."""


def duplicate_groups(
    table: Table, names: tuple[str, ...], *, level: float, keep: set[str]
) -> list[list[int]]:
    """Groups of two and more models that differ far less than chance.

    Two models are one if their squared difference is at most :data:`DIFFERENCE` of what
    independent models of their scores would have on these items, and if that is
    significant: the Chernoff bound for sums of independent differences in [0, 1],
    shared among all pairs. Equal columns are taken for one model first, so that copies
    do not pass for what other models know about an item. All pairs of a group are
    alike (complete linkage).

    Args:
        table: Models, none of them constant.
        names: Their ids.
        level: Probability of one or more false alarms.
        keep: Models known to be right.

    Returns:
        Positions of models, in each group the one to keep first: those in ``keep``,
        then those with the fewest gaps, then by name.
    """
    n_models = table.scores.shape[1]
    if n_models < 2:
        return []
    gaps = (~table.present).sum(0)
    threshold = -np.log(level / (n_models * (n_models - 1) / 2.0))

    def ordered(group: list[int]) -> list[int]:
        return sorted(group, key=lambda k: (names[k] not in keep, gaps[k], names[k]))

    groups = [ordered(group) for group in _equal(table, threshold)]
    if len(groups) > 1:
        labels = _alike(table.columns(np.array([g[0] for g in groups])), threshold)
        groups = [
            ordered([k for g in np.flatnonzero(labels == label) for k in groups[g]])
            for label in np.unique(labels)
        ]
    return sorted(group for group in groups if len(group) > 1)


def _equal(table: Table, threshold: float) -> list[list[int]]:
    """Sets of equal columns, those that might be equal by chance as single models."""
    columns, first, of = np.unique(
        table.scores, axis=1, return_index=True, return_inverse=True, equal_nan=True
    )
    chance = np.diag(difference_from_chance(table.columns(first))[1])
    groups = []
    for g in range(columns.shape[1]):
        members = np.flatnonzero(of == g).tolist()
        groups += [members] if chance[g] >= threshold else [[k] for k in members]
    return groups


def _alike(table: Table, threshold: float) -> NDArray[np.int64]:
    """Labels of groups in which all pairs are alike."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    observed, expected = difference_from_chance(table)
    known = expected > 0.0
    ratio = np.where(known, observed / np.where(known, expected, 1.0), np.inf)
    logs = np.log(np.where((observed > 0.0) & known, ratio, 1.0))
    alike = (ratio <= DIFFERENCE) & (expected - observed + observed * logs >= threshold)
    distance = np.where(alike, ratio, 1.0 + DIFFERENCE)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "complete")
    labels: NDArray[np.int64] = fcluster(tree, DIFFERENCE, "distance")
    return labels


def difference_from_chance(table: Table) -> tuple[Floats, Floats]:
    r"""Squared difference of each pair over common items, and what chance gives.

    Scores are scaled to [0, 1] over the whole table, so that for right and wrong it is
    the number of items on which two models differ. To allow for easy and hard items,
    both models :math:`j, k` are regressed on the sum of all others, with slopes that
    are not negative. With the fits
    :math:`f` and residuals :math:`e`, chance gives :math:`\sum_i (f_{ij} - f_{ik})^2 +
    e_{ij}^2 + e_{ik}^2`: residuals of independent models are uncorrelated. All of it
    follows from the covariances of the models. For these, gaps are filled by the level
    of the model and the item, and the expected difference is scaled to common items.

    Returns:
        Two ``K x K`` arrays, observed and expected; on the diagonal of the latter what
        is expected of two different models that both score like this one.
    """
    low, high = np.nanmin(table.scores), np.nanmax(table.scores)
    x = (table.scores - low) / (high - low if high > low else 1.0)
    present = table.present.astype(float)
    observed = _squared_differences(np.where(table.present, x, 0.0), present)
    filled = _filled(Table(x))
    expected = _independent(filled) * (present.T @ present)
    # Rounding must not tell equal columns apart.
    observed[observed < 1e-12 * np.maximum(expected, 1.0)] = 0.0
    return observed, expected


def _squared_differences(x: Floats, present: Floats) -> Floats:
    squares = (x**2).T @ present
    difference: Floats = np.maximum(squares + squares.T - 2.0 * (x.T @ x), 0.0)
    return difference


def _filled(table: Table) -> Floats:
    everyone = np.arange(table.scores.shape[1])
    fill = table.levels + table.means(everyone)[:, None]
    return np.where(table.present, table.scores, fill)


def _independent(x: Floats) -> Floats:
    """Mean squared difference an item of independent models, ``K x K``."""
    centred = x - x.mean(0)
    c = centred.T @ centred / len(x)
    own, total = np.diag(c), c.sum(1)
    # Covariance of j with the sum of all but j and k, and the variance of that sum.
    with_rest = total[:, None] - own[:, None] - c
    rest = c.sum() - 2.0 * (total[:, None] + total) + own[:, None] + own + 2.0 * c
    np.fill_diagonal(with_rest, total - own)
    np.fill_diagonal(rest, c.sum() - 2.0 * total + own)
    usable = rest > 1e-12 * c.trace()
    # Difficulty is what models have in common: a negative slope is none of it.
    slope = np.maximum(with_rest, 0.0) / np.where(usable, rest, 1.0)
    slope = np.where(usable, slope, 0.0)
    rest = np.maximum(rest, 0.0)
    residual = np.maximum(own[:, None] - slope**2 * rest, 0.0)
    means = (x.mean(0)[:, None] - x.mean(0)) ** 2
    expected: Floats = means + (slope - slope.T) ** 2 * rest + residual + residual.T
    return expected


def finding(case: Case) -> Finding | None:
    """The finding of the copies, each group without the model that is kept."""
    if not case.copies:
        return None
    copies = {k for group in case.copies for k in group[1:]}
    firsts = [k for k in range(len(case.models)) if k not in copies]
    chance = difference_from_chance(case.table.columns(np.array(firsts)))[1]
    observed = difference_from_chance(case.table)[0]
    records: list[dict[str, Any]] = []
    drop: set[str] = set()
    for first, *others in case.copies:
        names = case.names([first, *others])
        place = firsts.index(first)
        shares = observed[first, others] / chance[place, place]
        equal = bool((observed[first, others] == 0.0).all())
        records.append(
            {"models": list(names), "equal": equal, "difference": shares.tolist()}
        )
        drop.update(case.to_drop(others))
    n_equal = sum(record["equal"] for record in records)
    shown = "; ".join(" = ".join(r["models"][:3]) for r in records[:5])
    return Finding(
        kind="duplicate-models",
        severity="warning",
        text=(
            f"Copies of {len(records)} model{'' if len(records) == 1 else 's'}, "
            f"{n_equal} with equal and {len(records) - n_equal} with almost equal "
            f"scores: {shown}" + (" ..." if len(records) > 5 else "")
        ),
        advice=(
            "Keep one of each: copies make the prior surer than it is, and a target "
            "among its own copies looks easy to estimate."
        ),
        models=tuple(name for record in records for name in record["models"]),
        drop_models=tuple(name for name in case.models if name in drop),
        evidence={"groups": records},
    )
