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
    """Groups of two and more models that differ far less than chance, pair by pair.

    Two models are one if their squared difference is at most :data:`DIFFERENCE` of what
    independent models of their scores would have on these items, and if that is
    significant: the Chernoff bound for sums of independent differences in [0, 1],
    shared among all pairs. All pairs of a group are alike (complete linkage). The
    first of a group is the one to keep: those in ``keep``, then fewest gaps, then the
    first name.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    n_models = table.scores.shape[1]
    if n_models < 2:
        return []
    observed, expected = difference_from_chance(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = observed / expected
        log_p = -(
            expected - observed + np.where(observed > 0, observed * np.log(ratio), 0)
        )
    pairs = n_models * (n_models - 1) / 2
    alike = (ratio <= DIFFERENCE) & (log_p <= np.log(level / pairs))
    distance = np.where(alike, ratio, 2.0 + DIFFERENCE)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "complete")
    labels = fcluster(tree, DIFFERENCE, "distance")
    gaps = (~table.present).sum(0)
    groups = [np.flatnonzero(labels == g).tolist() for g in np.unique(labels)]
    return [
        sorted(group, key=lambda k: (names[k] not in keep, gaps[k], names[k]))
        for group in groups
        if len(group) > 1
    ]


def difference_from_chance(table: Table) -> tuple[Floats, Floats]:
    r"""Squared difference of each pair over common items, and what chance gives.

    Scores are scaled to [0, 1] over the whole table, so that for right and wrong it is
    the number of items on which two models differ. To allow for easy and hard items,
    both models :math:`j, k` are regressed on the sum of all others. With the fits
    :math:`f` and residuals :math:`e`, chance gives :math:`\sum_i (f_{ij} - f_{ik})^2 +
    e_{ij}^2 + e_{ik}^2`: residuals of independent models are uncorrelated. All of it
    follows from the covariances of the models. For these, gaps are filled by the level
    of the model and the item, and the expected difference is scaled to common items.

    Returns:
        Two ``K x K`` arrays, observed and expected.
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
    usable = rest > 1e-12 * c.trace()
    slope = np.where(usable, with_rest / np.where(usable, rest, 1.0), 0.0)
    rest = np.maximum(rest, 0.0)
    residual = np.maximum(own[:, None] - slope**2 * rest, 0.0)
    means = (x.mean(0)[:, None] - x.mean(0)) ** 2
    expected: Floats = means + (slope - slope.T) ** 2 * rest + residual + residual.T
    return expected


def finding(case: Case) -> Finding | None:
    """The finding of the copies, each group without the model that is kept."""
    if not case.copies:
        return None
    observed, expected = difference_from_chance(case.table)
    records: list[dict[str, Any]] = []
    drop: set[str] = set()
    for first, *others in case.copies:
        names = case.names([first, *others])
        shares = observed[first, others] / expected[first, others]
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
            f"Copies of {len(records)} models, {n_equal} with equal and "
            f"{len(records) - n_equal} with almost equal scores: {shown}"
            + (" ..." if len(records) > 5 else "")
        ),
        advice=(
            "Keep one of each: copies make the prior surer than it is, and a target "
            "among its own copies looks easy to estimate."
        ),
        models=tuple(name for record in records for name in record["models"]),
        drop_models=tuple(name for name in case.models if name in drop),
        evidence={"groups": records},
    )
