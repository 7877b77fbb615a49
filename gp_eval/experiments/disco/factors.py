"""The factor analysis of the DISCO paper: one factor at a time (Table 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from gp_eval.disco import DiscoOptions, predictor_names
from gp_eval.experiments.disco.run import run_trials
from gp_eval.experiments.disco.summary import summarise_trials
from gp_eval.experiments.disco.trials import Trial

__all__ = ["Levels", "factor_analysis"]


@dataclass(frozen=True)
class Levels:
    """What each factor is set to, with the others as in the base.

    Attributes:
        guiding: Numbers ``M`` of guiding models; ``None`` for all references.
        pca: Numbers of components; ``None`` for whole signatures.
        predictors: Names of predictors.
        stratify: Whether every group gets its share; left out without groups.
        sources: Shares of the references that the plan is made from.
    """

    guiding: Sequence[int | None] = (2, 10, 100, None)
    pca: Sequence[int | None] = (4, 16, 64, 256, None)
    predictors: Sequence[str] = predictor_names()
    stratify: Sequence[bool] = (False, True)
    sources: Sequence[float] = (0.25, 0.5, 0.75, 1.0)


def factor_analysis(
    trials: Iterable[Trial],
    base: DiscoOptions,
    *,
    levels: Levels | None = None,
    n_draws: int = 5,
) -> pd.DataFrame:
    """MAE, Spearman and coverage with one factor changed at a time.

    Levels that the references do not allow are left out: more guiding models or
    components than there are references, strata without groups, and PCA with the GP,
    which takes none. Nothing is tuned: every level is there, no best one is picked.

    Args:
        trials: Splits of one regime.
        base: What the other factors are set to.
        levels: Default :class:`Levels`.
        n_draws: Draws of the guiding subset, random items and trees.

    Returns:
        A row for each level: ``factor``, ``level``, and the columns of
        :func:`.summarise_trials`.

    Raises:
        ValueError: For no trial, or a share of references outside ``(0, 1]``.
    """
    levels = levels or Levels()
    for share in levels.sources:
        if not 0.0 < share <= 1.0:
            raise ValueError(f"sources: expected 0 < share <= 1, got {share}")
    found = [_one_split(trial, base, levels, n_draws) for trial in trials]
    if not found:
        raise ValueError("trials: expected at least one")
    summary = summarise_trials(pd.concat(found), by=["factor", "level"])
    return summary[["factor", "level", *summary.columns[:-2]]]


def _one_split(
    trial: Trial, base: DiscoOptions, levels: Levels, n_draws: int
) -> pd.DataFrame:
    changes = _changes(trial, base, levels)
    named = [(factor, level) for factor, level, _ in changes]
    options = [
        DiscoOptions.model_validate({**base.model_dump(), **change})
        for _, _, change in changes
    ]
    rows = [run_trials([trial], options, n_draws=n_draws)]
    for share in levels.sources:
        size = max(2, round(share * len(trial.references.models)))
        if base.guiding is None or base.guiding <= size:
            smaller = run_trials([trial.with_sources(size)], [base], n_draws=n_draws)
            rows.append(smaller.assign(setting=len(named)))
            named.append(("sources", str(size)))
    table = pd.concat(rows, ignore_index=True)
    factors, names = zip(*(named[place] for place in table["setting"]), strict=True)
    return table.assign(factor=factors, level=names)


def _changes(
    trial: Trial, base: DiscoOptions, levels: Levels
) -> list[tuple[str, str, dict[str, object]]]:
    """Factor, level and what it changes in the base."""
    size = len(trial.references.models)
    changes: list[tuple[str, str, dict[str, object]]] = [("base", "", {})]
    if base.choice not in ("random", "given"):
        changes += [
            ("guiding", "all" if m is None else str(m), {"guiding": m})
            for m in levels.guiding
            if m is None or m <= size
        ]
        if trial.references.groups is not None:
            changes += [
                ("stratify", "yes" if s else "no", {"stratify": s})
                for s in levels.stratify
            ]
    if base.predictor not in ("gp", "mean"):
        changes += [
            ("pca", "none" if c is None else str(c), {"pca": c})
            for c in levels.pca
            if c is None or c < size
        ]
    changes += [
        ("predictor", name, {"predictor": name, "predictor_options": {}})
        for name in levels.predictors
    ]
    return changes
