"""Accuracy against a base model and calibration, over every real score matrix.

    OMP_NUM_THREADS=1 python benchmarks/calibration.py --models rs-mean --jobs 2

Every set in interpolation and extrapolation, 10 seeds x 10 targets, half of the
references; runs of sets above 1,200 items are cut at 1,000. A model is a registered
name, or ``name@folder`` for results that lie in a folder of their own; ``--base`` as
well. What is missing is simulated, unless ``--report-only``; the same line resumes.

A JSON line for each model and cell (set x regime), one for each model over all cells,
and tables on stderr. The ratio is that of evaluation-weighted integrated RMSEs over the
evaluated range of n / N, on the runs that both models have, with its standard error by
the jackknife over targets and seeds. ``stops`` are by the given rule;
``coverage_stopped`` there leaves out runs that are exact because nothing was left.
``items_ratio`` is the mean coreset at the RMSE that the base has at its stop, over the
base's coreset there.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _calibration_tables import print_tables
from _common import SHARED, emit, one_thread
from rich.progress import Progress

from gp_eval.cli.output import note, progress_console
from gp_eval.data import References
from gp_eval.experiments.cells import Cell, Regime, plan_cells
from gp_eval.experiments.paired import RmseRatio, geometric_mean, rmse_ratio
from gp_eval.experiments.simulate import simulate
from gp_eval.experiments.store import CellResult, read_result
from gp_eval.experiments.summary import Summary, summarise

REGIMES: list[Regime] = ["interpolation", "extrapolation"]
FULL, CAP = 1200, 1000  # items up to which runs go to the end, and the cut of others
SHARES = ("0.05", "0.1", "0.2", "0.33", "0.5")
EXACT = 1e-12  # below this an error is rounding, as at n = N
STOPS = (0.02, 0.03, 0.05)
GRID = tuple(sorted({*STOPS, *np.geomspace(0.004, 0.4, 30).tolist()}))


@dataclass(frozen=True)
class Source:
    """A model and the folder of its results."""

    label: str
    model: str
    folder: Path

    @classmethod
    def parse(cls, text: str, default: Path) -> Source:
        model, _, folder = text.partition("@")
        return cls(text, model, Path(folder) if folder else default)

    def plan(self, data: str, scores: References, seeds: int) -> list[Cell]:
        return plan_cells(
            [data],
            models=[self.model],
            regimes=REGIMES,
            reference_fractions=[0.5],
            seeds=seeds,
            n_targets=10,
            draws=1,
            n_max=None if len(scores.items) <= FULL else CAP,
        )

    def run(self, data: str, scores: References, seeds: int, jobs: int | None) -> None:
        """Simulate what is missing."""
        cells = self.plan(data, scores, seeds)
        with Progress(console=progress_console(), transient=True) as bars:
            bar = bars.add_task(f"{data}, {self.label}", total=len(cells))
            for outcome in simulate(cells, {data: scores}, self.folder, jobs=jobs):
                bars.advance(bar)
                if outcome.refused:
                    note(f"{self.label} on {outcome.cell.path}: {outcome.refused}")

    def results(
        self, data: str, scores: References, seeds: int
    ) -> dict[Regime, list[CellResult]]:
        """Results by regime that are there and of these scores."""
        found: dict[Regime, list[CellResult]] = {regime: [] for regime in REGIMES}
        for cell in self.plan(data, scores, seeds):
            path = self.folder / cell.path
            if not path.exists():
                continue
            result = read_result(path)
            if result.fingerprint != scores.fingerprint:
                raise SystemExit(f"{path}: made from other scores")
            found[cell.regime].append(result)
        return found


@dataclass(frozen=True)
class Row:
    """A model in a cell."""

    label: str
    summary: Summary
    ratio: RmseRatio
    items_ratio: dict[str, float | None]

    def record(self) -> dict[str, Any]:
        record = self.summary.record()
        record["stops"] = [s for s in record["stops"] if s["width"] in STOPS]
        ratio = {k: v for k, v in vars(self.ratio).items() if k != "log_se"}
        ratio["ratio_se"] = _finite(self.ratio.se)
        shown = {**record, "model": self.label, **ratio}
        return {**shown, "items_ratio": self.items_ratio}


def cell_rows(
    sources: Sequence[Source],
    found: dict[str, list[CellResult]],
    *,
    stable: float,
    window: int,
) -> list[Row]:
    """A row for each model that has results in a cell; the base is the first source."""
    base = found[sources[0].label]
    if not base:
        return []
    rows: list[Row] = []
    for source in sources:
        results = found[source.label]
        if not results:
            continue
        (summary,) = summarise(results, stable=stable, window=window, widths=GRID)
        reference = rows[0].summary if rows else summary
        equal = {f"{w:g}": items_at_equal_rmse(summary, reference, w) for w in STOPS}
        rows.append(Row(source.label, summary, rmse_ratio(results, base), equal))
    return rows


def items_at_equal_rmse(model: Summary, base: Summary, width: float) -> float | None:
    """Coreset of the model over the base's where its RMSE is that of the base's stop.

    Between the two stops of the model whose RMSE encloses it, linear in its logarithm.
    ``None`` where no two do, or where not all runs stopped before a cut.
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
    }


def _name(row: Row) -> str:
    return f"{row.summary.data} {row.summary.regime}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def sets(only: str) -> list[Path]:
    """The score matrices, small ones first."""
    paths = sorted((SHARED / "data").glob("*.npz"), key=lambda p: p.stat().st_size)
    wanted = only.split(",") if only else [path.stem for path in paths]
    if unknown := set(wanted) - {path.stem for path in paths}:
        raise SystemExit(f"--only: no such sets: {sorted(unknown)}")
    return [path for path in paths if path.stem in wanted]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default="", help="separated by commas")
    parser.add_argument("--base", default="bayesame")
    parser.add_argument("--only", default="", help="sets, separated by commas")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--stable", type=float, default=0.005)
    parser.add_argument("--window", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--report-only", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=Path("results-calib"))
    return parser.parse_args()


def main() -> None:
    one_thread()
    options = arguments()
    texts = dict.fromkeys([options.base, *filter(None, options.models.split(","))])
    sources = [Source.parse(text, options.output) for text in texts]
    rows: list[Row] = []
    for path in sets(options.only):
        scores = References.read(path, missing="drop-models", duplicate_models="number")
        found = {}
        for source in sources:
            if not options.report_only:
                source.run(path.stem, scores, options.seeds, options.jobs)
            found[source.label] = source.results(path.stem, scores, options.seeds)
        for regime in REGIMES:
            cells = {label: by_regime[regime] for label, by_regime in found.items()}
            rule = {"stable": options.stable, "window": options.window}
            for row in cell_rows(sources, cells, **rule):
                emit(benchmark="calibration", **row.record())
                rows.append(row)
    totals = []
    for source in sources:
        if mine := [row for row in rows if row.label == source.label]:
            totals.append(overall(source.label, mine))
            emit(benchmark="calibration-overall", base=options.base, **totals[-1])
    print_tables([row.record() for row in rows], totals)


if __name__ == "__main__":
    main()
