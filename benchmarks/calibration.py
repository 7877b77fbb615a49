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
base's coreset there; ``score_ratio`` is that of mean interval scores, which wide
intervals do not win.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from _calibration_rows import Row, cell_rows, overall
from _calibration_tables import print_tables
from _common import SHARED, emit, one_thread
from rich.progress import Progress

from gp_eval.cli.output import note, progress_console
from gp_eval.data import References
from gp_eval.experiments.cells import Cell, Regime, plan_cells
from gp_eval.experiments.simulate import simulate
from gp_eval.experiments.store import CellResult, read_result

REGIMES: list[Regime] = ["interpolation", "extrapolation"]
FULL, CAP = 1200, 1000  # items up to which runs go to the end, and the cut of others


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
            for row in cell_rows(list(texts), cells, **rule):
                emit(benchmark="calibration", **row.record())
                rows.append(row)
    if not rows:
        raise SystemExit(
            f"no results of the base {options.base!r} in {sources[0].folder}"
        )
    totals = []
    for source in sources:
        if mine := [row for row in rows if row.label == source.label]:
            totals.append(overall(source.label, mine))
            emit(benchmark="calibration-overall", base=options.base, **totals[-1])
    print_tables([row.record() for row in rows], totals)


if __name__ == "__main__":
    main()
