"""One table over every real score matrix, so that no set is tuned to.

    OMP_NUM_THREADS=1 python benchmarks/all_sets.py --seeds 3 -o results-all/

Binary, continuous, unbounded, with missing cells (models that lack any are dropped) and
large sets, where runs are capped. Prints a JSON line for each set, regime and model,
and a table: RMSE relative to RS-Mean and coverage of the 95 % interval at 10 % of the
items (or at the cap). The same line resumes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from _common import SHARED, emit, one_thread
from rich.console import Console
from rich.table import Table

from gp_eval.data import References
from gp_eval.experiments.cells import plan_cells
from gp_eval.experiments.simulate import simulate
from gp_eval.experiments.store import read_result
from gp_eval.experiments.summary import Summary, summarise

MODELS = ["rs-mean", "bayesame", "bayesame-rs", "bayes-aipw", "aipw", "proeval"]
FULL = 1200  # items up to which runs go to the end


def load(path: Path) -> References:
    return References.read(path, missing="drop-models", duplicate_models="number")


def run(path: Path, seeds: int, models: list[str], output: Path) -> list[Summary]:
    """All cells of one set."""
    scores = load(path)
    n_items = len(scores.items)
    cells = plan_cells(
        [path.stem],
        models=models,
        regimes=["interpolation", "extrapolation"],
        reference_fractions=[0.5],
        seeds=seeds,
        n_targets=min(10, len(scores.models) // 3),
        draws=1,
        n_max=None if n_items <= FULL else 200,
    )
    list(simulate(cells, {path.stem: scores}, output))
    return summarise(read_result(output / cell.path) for cell in cells)


def place(summary: Summary) -> int:
    """10 % of the items, or the cap."""
    return min(round(0.1 * summary.n_items), summary.rmse.shape[0]) - 1


def print_table(summaries: list[Summary], models: list[str]) -> None:
    table = Table("set", "regime", "N", "n", *models, box=None)
    found = {(s.data, s.regime, s.model): s for s in summaries}
    for data, regime in dict.fromkeys((s.data, s.regime) for s in summaries):
        base = found[data, regime, "rs-mean"]
        row = [data, regime, str(base.n_items), str(place(base) + 1)]
        for model in models:
            summary = found[data, regime, model]
            n = place(summary)
            ratio = float(summary.rmse[n] / base.rmse[n])
            row.append(f"{ratio:.2f} ({float(summary.coverage[n]):.2f})")
        table.add_row(*row)
    Console(stderr=True, width=200).print(table)


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--only", default="", help="sets, separated by commas")
    parser.add_argument("-o", "--output", type=Path, default=Path("results-all"))
    options = parser.parse_args()
    models = list(dict.fromkeys(["rs-mean", *options.models.split(",")]))
    wanted = options.only.split(",") if options.only else None
    summaries = []
    paths = sorted((SHARED / "data").glob("*.npz"), key=lambda p: p.stat().st_size)
    for path in paths:
        if wanted and path.stem not in wanted:
            continue
        for summary in run(path, options.seeds, models, options.output):
            emit(benchmark="all_sets", **summary.record())
            summaries.append(summary)
    print_table(summaries, models)


if __name__ == "__main__":
    main()
