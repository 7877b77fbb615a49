"""Blocks of models that agree among themselves and not with each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gp_eval.diagnosis.permutation import below, permutation_correlations, z_quantile
from gp_eval.diagnosis.table import Table, agreement_p_value, reliability

__all__ = ["Blocks", "Relation", "find_blocks", "relation"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Relation:
    """How two sets of models agree over items.

    Attributes:
        correlation: Of their mean scores over items.
        expected: What it would be if both measured the same.
        related: Whether it is significantly positive.
        opposed: Whether it is significantly negative.
        apart: Whether it is not positive although what is expected would have been
            seen. Sets that are neither related nor apart are too few to tell.
    """

    correlation: float
    expected: float
    related: bool
    opposed: bool
    apart: bool


@dataclass
class Blocks:
    """Sets of positions of models.

    Attributes:
        blocks: Sets that agree inside and are apart from each other.
        loose: Models that are in none of them, which says nothing against them yet.
    """

    blocks: list[list[int]] = field(default_factory=list)
    loose: list[int] = field(default_factory=list)


def find_blocks(table: Table, *, level: float) -> Blocks:
    """Split models where two sets of them have nothing to do with each other.

    The tree of average linkage over the correlations between models is walked from the
    top. Where the two sides of a node are related, all below it is one block, if its
    members agree (by :func:`.agreement_p_value`, shared among all sets of models of
    that size, because the tree looks for chance). Where they are apart, both sides are
    walked. Where one is a single model, or that cannot be told, the smaller side is put
    aside.

    Args:
        table: Different models, none of them constant.
        level: Level of the tests.
    """
    from scipy.cluster.hierarchy import to_tree

    found = Blocks()
    n_models = table.scores.shape[1]
    waiting = [to_tree(_tree(table))] if n_models > 1 else []
    if n_models == 1:
        found.loose = [0]
    while waiting:
        node = waiting.pop()
        members = _members(node)
        if node.is_leaf():
            found.loose += members
            continue
        small, large = sorted((node.left, node.right), key=lambda side: side.count)
        sides = relation(
            table, _members(small), _members(large), level=level, tests=n_models
        )
        if node.count == 2 or (sides.related and small.count > 1):
            agree = _agree(table, members, level)
            (found.blocks.append if agree else found.loose.extend)(members)
            continue
        waiting.append(large)
        if sides.apart and small.count > 1:
            waiting.append(small)
        else:
            found.loose += _members(small)
    return found


def _agree(table: Table, members: list[int], level: float) -> bool:
    n_models, size = table.scores.shape[1], len(members)
    p = agreement_p_value(table.columns(np.array(members)))
    log_sets = math.log(n_models) + math.log(math.comb(n_models, size))
    return p == 0.0 or math.log(p) + log_sets <= math.log(level)


def _members(node: Any) -> list[int]:
    return sorted(int(k) for k in node.pre_order())


def _tree(table: Table) -> Floats:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    if table.present.all():
        with np.errstate(invalid="ignore", divide="ignore"):  # of a constant: NaN
            correlation = np.corrcoef(table.scores, rowvar=False)
    else:
        correlation = pd.DataFrame(table.scores).corr(min_periods=3).to_numpy()
    distance = np.maximum(1.0 - np.nan_to_num(correlation), 0.0)
    np.fill_diagonal(distance, 0.0)
    tree: Floats = linkage(squareform(distance, checks=False), "average")
    return tree


def relation(
    table: Table, left: list[int], right: list[int], *, level: float, tests: int
) -> Relation:
    r"""Compare the mean scores of two sets of models over items.

    If both measured the same, the correlation would be about
    :math:`\sqrt{\rho_1 \rho_2}` of what the values allow, with the reliabilities of
    the two means (Spearman's correction for attenuation).

    Args:
        table: Different models, none of them constant.
        left: Positions of models.
        right: Positions of other models.
        level: Level of each test.
        tests: Number of tests that share the level where many are made.
    """
    one, other = np.array(left), np.array(right)
    outcome = permutation_correlations(
        table.means(one)[:, None], table.means(other)[:, None]
    )
    r, n = float(outcome.r[0]), int(outcome.n[0])
    rho = reliability(table.columns(one)) * reliability(table.columns(other))
    both = min(reliability(table.columns(k)) for k in (one, other)) > 0.0
    expected = np.sqrt(rho) * float(outcome.attainable[0]) if both else np.nan
    related = bool(outcome.high[0] <= level)
    opposed = bool(outcome.low[0] <= level / tests)
    missed = not related and bool(below(r, expected, n, z_quantile(level, tests)))
    return Relation(r, float(expected), related, opposed, opposed or missed)
