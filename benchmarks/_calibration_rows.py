"""Figures of ``benchmarks/calibration.py``: a model in a cell, and over all cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gp_eval.experiments.paired import RmseRatio, geometric_mean, rmse_ratio
from gp_eval.experiments.store import CellResult
from gp_eval.experiments.summary import Summary, summarise

SHARES = ("0.05", "0.1", "0.2", "0.33", "0.5")
EXACT = 1e-12  # below this an error is rounding, as at n = N
STOPS = (0.02, 0.03, 0.05)
GRID = tuple(sorted({*STOPS, *np.geomspace(0.004, 0.4, 30).tolist()}))


@dataclass(frozen=True)
class Row:
    """A model in a cell."""

    label: str
    summary: Summary
    ratio: RmseRatio
    items_ratio: dict[str, float | None]
    score_ratio: dict[str, float]

    def record(self) -> dict[str, Any]:
        record = self.summary.record()
        record["stops"] = [s for s in record["stops"] if s["width"] in STOPS]
        ratio = {k: v for k, v in vars(self.ratio).items() if k != "log_se"}
        ratio["ratio_se"] = _finite(self.ratio.se)
        shown = {**record, "model": self.label, **ratio}
        extra = {"items_ratio": self.items_ratio, "score_ratio": self.score_ratio}
        return {**shown, **extra}


def cell_rows(
    labels: Sequence[str],
    found: dict[str, list[CellResult]],
    *,
    stable: float,
    window: int,
) -> list[Row]:
    """A row for each model that has results in a cell; the base is the first label."""
    base = found[labels[0]]
    if not base:
        return []
    rows: list[Row] = []
    for label in labels:
        results = found[label]
        if not results:
            continue
        (summary,) = summarise(results, stable=stable, window=window, widths=GRID)
        reference = rows[0].summary if rows else summary
        equal = {f"{w:g}": items_at_equal_rmse(summary, reference, w) for w in STOPS}
        score = score_ratios(summary, reference)
        rows.append(Row(label, summary, rmse_ratio(results, base), equal, score))
    return rows


def score_ratios(model: Summary, base: Summary) -> dict[str, float]:
    """Interval score of the model over the base's, by n / N."""
    own, other = (s.record()["interval_score"] for s in (model, base))
    return {s: own[s] / other[s] for s in SHARES if own.get(s) and other.get(s)}


def items_at_equal_rmse(model: Summary, base: Summary, width: float) -> float | None:
    """Coreset of the model over the base's where its RMSE is that of the base's stop.

    Between the two stops of the model whose RMSE encloses it, linear in its logarithm,
    and a mean where several do. ``None`` where no two do, or where not all runs stopped
    before a cut.
    """
    here = next(s for s in base.stops if s.width == width)
    if not (here.stopped == 1.0 or base.is_complete) or here.rmse <= EXACT:
        return None
    places = [
        (math.log(s.rmse), s.mean_fraction)
        for s in model.stops
        if s.rmse > EXACT and (s.stopped == 1.0 or model.is_complete)
    ]
    wanted = math.log(here.rmse)
    crossings = [
        y + (wanted - x) / (u - x) * (v - y) if u != x else v
        for (x, y), (u, v) in pairwise(places)
        if min(x, u) <= wanted <= max(x, u)
    ]
    return float(np.mean(crossings)) / here.mean_fraction if crossings else None


def overall(label: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Figures of a model over all cells; cells count alike."""
    mean, log_se = geometric_mean([row.ratio for row in rows])
    worst = max(rows, key=lambda row: row.ratio.ratio)
    above = [
        _name(row)
        for row in rows
        if math.log(row.ratio.ratio) > 2.0 * (_finite(row.ratio.log_se) or 0.0)
    ]
    records = [(row, row.record()) for row in rows]
    by_n = {
        share: _pool(
            (row, r["coverage"].get(share), r["coverage_se"].get(share))
            for row, r in records
        )
        for share in SHARES
    }
    at_stop = {
        f"{width:g}": {
            key: _pool((row, *_of_stop(r, width, key)) for row, r in records)
            for key in ("coverage", "coverage_stopped")
        }
        for width in STOPS
    }
    return {
        "model": label,
        "cells": len(rows),
        "ratio_geometric_mean": mean,
        "ratio_geometric_mean_se": _finite(mean * log_se),
        "worst_cell": _name(worst),
        "worst_ratio": worst.ratio.ratio,
        "worst_ratio_se": _finite(worst.ratio.se),
        "cells_above_1_by_2_se": above,
        "interval_score_ratio": {
            share: float(np.exp(np.mean(np.log(ratios))))
            for share in SHARES
            if (
                ratios := [r.score_ratio[share] for r in rows if share in r.score_ratio]
            )
        },
        "coverage": by_n,
        "at_stop": at_stop,
    }


def _of_stop(record: dict[str, Any], width: float, key: str) -> tuple[Any, Any]:
    stop = next(s for s in record["stops"] if s["width"] == width)
    return stop[key], stop[f"{key}_se"]


def _pool(cells: Iterable[tuple[Row, Any, Any]]) -> dict[str, Any] | None:
    """Mean over cells and the lowest, with standard errors."""
    kept = [(row, value, se) for row, value, se in cells if value is not None]
    if not kept:
        return None
    row, low, low_se = min(kept, key=lambda cell: cell[1])
    errors = [se for _, _, se in kept]
    known = all(se is not None for se in errors)
    return {
        "pooled": float(np.mean([value for _, value, _ in kept])),
        "se": math.hypot(*errors) / len(kept) if known else None,
        "min": low,
        "min_se": low_se,
        "min_cell": _name(row),
        "cells": len(kept),
        "cells_below_0.9": [_name(row) for row, value, _ in kept if value < 0.9],
    }


def _name(row: Row) -> str:
    return f"{row.summary.data} {row.summary.regime}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
