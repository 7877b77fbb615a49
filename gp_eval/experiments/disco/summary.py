"""MAE, Spearman and coverage of DISCO's predictions, with their spread."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ConstantInputWarning, norm, spearmanr

from gp_eval.experiments.disco.run import SETTING

__all__ = ["by_fit", "records", "summarise_trials"]

_METRICS = ["mae", "spearman", "coverage"]


def by_fit(rows: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """One row for each setting, split and draw.

    Args:
        rows: As of :func:`.run_trials`.
        level: Of the interval that ``coverage`` is about.

    Returns:
        ``mae`` in score units; ``spearman``, missing where all predictions tie;
        ``coverage``, the share of targets inside the interval, missing where the
        predictor has none; ``n_targets``.
    """
    keys = ["setting", "regime", "split", "draw"]
    half = float(norm.ppf(0.5 + level / 2.0)) * rows["std"]
    error = (rows["predicted"] - rows["truth"]).abs()
    inside = (error <= half).astype(float).where(half.notna())
    rows = rows.assign(error=error, inside=inside)
    groups = rows.groupby(keys, sort=False)
    table = groups[SETTING].first()
    table["mae"] = groups["error"].mean()
    table["spearman"] = groups[["truth", "predicted"]].apply(_spearman)
    table["coverage"] = groups["inside"].mean()
    table["n_targets"] = groups.size()
    return table.reset_index()


def summarise_trials(
    rows: pd.DataFrame, *, level: float = 0.95, by: Sequence[str] = ()
) -> pd.DataFrame:
    """One row for each setting: means, and two kinds of spread.

    ``<metric>_sd_splits`` is the standard deviation over splits of the mean over draws.
    ``<metric>_sd_draws`` is the root mean square over splits of the standard deviation
    over draws: what the draw of the guiding subset, of random items or of trees does to
    a figure. No draw is singled out; the best of several on the targets themselves, as
    Table 1 of the DISCO paper has it, would not be what a later model gets.

    Args:
        rows: As of :func:`.run_trials`.
        level: Of the interval that ``coverage`` is about.
        by: More columns that are the same for all rows of a setting, to be kept.
    """
    fits = by_fit(rows, level=level)
    keys = ["setting", "regime"]
    per_split = fits.groupby([*keys, "split"], sort=False)[_METRICS]
    means = per_split.mean().groupby(keys, sort=False)
    # Of a single draw or split there is no deviation: missing, not 0.
    draws = per_split.var().groupby(keys, sort=False).mean() ** 0.5
    table = fits.groupby(keys, sort=False)[SETTING].first()
    for metric in _METRICS:
        table[metric] = means[metric].mean()
        table[f"{metric}_sd_splits"] = means[metric].std()
        table[f"{metric}_sd_draws"] = draws[metric]
    groups = fits.groupby(keys, sort=False)
    table["n_targets"] = groups["n_targets"].first()
    table["n_splits"] = groups["split"].nunique()
    table["n_draws"] = groups["draw"].nunique()
    for name in by:
        table[name] = rows.groupby(keys, sort=False)[name].first()
    return table.reset_index().drop(columns="setting")


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON objects, ``None`` for what is missing."""
    plain = table.astype(object)
    found = plain.where(table.notna(), None).to_dict("records")
    return [{str(name): _plain(value) for name, value in row.items()} for row in found]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _spearman(group: pd.DataFrame) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)
        return float(spearmanr(group["truth"], group["predicted"]).statistic)
