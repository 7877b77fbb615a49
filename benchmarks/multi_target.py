"""Joint against single-target evaluation on IFEval: curves, and coreset sizes.

    OMP_NUM_THREADS=1 python benchmarks/multi_target.py --seeds 6 --jobs 2 -o results/

Section 5.2 of the BayesAME paper: ten targets, the most correlated ones or a random
draw, 50 % of the other models as references. Runs are cut at 40 % of the items. For
each regime it prints the RMSE curves, and the size of the coreset from which on a curve
stays at or below an RMSE of 1 % and 2 %, with the ratio of single-target to
multi-target size (above 1: joint evaluation needs fewer); ``null`` where a curve does
not get there before the cut. Finished cells are kept in the folder.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from _common import emit, one_thread, shared_references

from gp_eval.experiments.cells import plan_cells
from gp_eval.experiments.figures import plot_summaries
from gp_eval.experiments.simulate import simulate
from gp_eval.experiments.store import read_result
from gp_eval.experiments.summary import Summary, summarise

DATA = "benchpred_ifeval"
POINTS = (0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)


def size_at(summary: Summary, threshold: float) -> int | None:
    """The first n from which on the RMSE stays at or below the threshold."""
    above = torch.nonzero(summary.rmse > threshold)
    first = int(above[-1]) + 2 if above.shape[0] else 1
    return first if first <= summary.rmse.shape[0] else None


def report(summaries: dict[str, Summary]) -> dict[str, object]:
    """Curves of all models, and sizes with their ratios to the single-target model."""
    curves = {
        name: {
            f"{share:g}": round(100 * float(s.rmse[round(share * s.n_items) - 1]), 3)
            for share in POINTS
        }
        for name, s in summaries.items()
    }
    sizes: dict[str, dict[str, object]] = {}
    for threshold in (0.01, 0.02):
        found = {name: size_at(s, threshold) for name, s in summaries.items()}
        row: dict[str, object] = dict(found)
        single = found["bayesame"]
        for name, size in found.items():
            if name.startswith("bayesame-multi"):
                known = single is not None and size is not None
                row[f"bayesame / {name}"] = single / size if known else None
        sizes[f"{threshold:g}"] = row
    return {"rmse_percent": curves, "coreset_size_at_rmse": sizes}


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--models", default="bayesame,bayesame-multi,bayesame-multi-average,rs-mean"
    )
    parser.add_argument("--regimes", default="high-correlation,low-correlation")
    parser.add_argument(
        "--options",
        type=json.loads,
        default={},
        help='of the joint models as JSON, such as {"steps": 100}; its own folder',
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("results"))
    options = parser.parse_args()
    scores = shared_references(DATA)
    models = options.models.split(",")
    joint = [m for m in models if m.startswith("bayesame-multi")]
    cells = plan_cells(
        [DATA],
        models=models,
        options=dict.fromkeys(joint, options.options),
        regimes=options.regimes.split(","),
        reference_fractions=[0.5],
        seeds=options.seeds,
        n_targets=10,
        draws=options.draws,
        n_max=round(0.4 * len(scores.items)),
    )
    for outcome in simulate(cells, {DATA: scores}, options.output, jobs=options.jobs):
        if outcome.refused is not None:
            raise SystemExit(f"{outcome.cell}: {outcome.refused}")
    summaries = summarise(read_result(options.output / cell.path) for cell in cells)
    for regime in options.regimes.split(","):
        group = {s.model: s for s in summaries if s.regime == regime}
        cpu = {name: round(s.cpu_s, 2) for name, s in group.items()}
        emit(
            data=DATA,
            regime=regime,
            seeds=options.seeds,
            draws=next(iter(group.values())).n_targets // 10,
            options=options.options,
            cpu_s_per_run=cpu,
            **report(group),
        )
    for path in plot_summaries(summaries, options.output / "multi_target"):
        emit(figure=str(path))


if __name__ == "__main__":
    main()
