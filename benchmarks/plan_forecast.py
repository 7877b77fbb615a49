"""What a plan promises against what then happens on targets it never saw.

    OMP_NUM_THREADS=1 python benchmarks/plan_forecast.py --draws 2 > plan.jsonl

Of each set ten models are hidden, at random (``interpolation``, several draws) or the
best (``extrapolation``; ``--hidden-gap`` drops the next share as well), and a plan is
made from the rest. Then the hidden ones are evaluated to the stop with all the rest as
references. A JSON line for each set, regime, model and width: forecast and truth pooled
over draws, their ratio, and the 95 % interval of the truth over resampled targets,
which is what ten or twenty targets can tell. The plan is made with a fixed number of
runs, so that the load of the machine does not matter.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from _common import emit, one_thread, shared_references

from gp_eval.experiments.simulators import make_simulator
from gp_eval.experiments.splits import Split, extrapolation, interpolation
from gp_eval.planning import PlanSettings, make_plan
from gp_eval.planning.bootstrap import estimate, resampled
from gp_eval.planning.content import Forecast
from gp_eval.planning.folds import Fold, PlanRegime
from gp_eval.planning.recommend import FACTORS
from gp_eval.planning.settings import DEFAULT_MODELS
from gp_eval.planning.stops import Stops, find_stops
from gp_eval.planning.tasks import Done, Task, run_tasks
from gp_eval.stopping import StoppingRule

SETS = (
    "terminalbench2,benchpred_rte,benchpred_commonsense,swebench_verified,"
    "benchpred_mmlu,livebench,benchpred_ifeval,benchpred_musr"
)
WIDTH = 0.06  # and the narrower ones that a plan tries: 0.051, 0.042 and 0.03
SMALL = 200  # items below which an estimate cannot be stable to 0.005
TINY = 0.02  # errors that differ by less than this share of the width are the same


def rule(n_items: int) -> StoppingRule:
    return StoppingRule(width=WIDTH, stable=0.005 if n_items >= SMALL else 0.02)


def splits(
    name: str, regime: PlanRegime, draws: int, gap: float
) -> Iterator[tuple[int, Split]]:
    scores = shared_references(name)
    if regime == "extrapolation":
        yield 0, extrapolation(scores, n_targets=10, gap=gap)
        return
    for draw in range(draws):
        yield draw, interpolation(scores, n_targets=10, target_seed=100 + draw)


def happens(split: Split, regime: PlanRegime, models: list[str]) -> list[Done]:
    """The hidden targets on all the rest."""
    table = split.scores
    simulators = {model: make_simulator(model) for model in models}
    fold = Fold(regime, split.targets, split.pool, seed=10_000)
    n_items = len(table.items)
    tasks = [
        Task(model, replace(fold, seed=fold.seed + order), n_items)
        for model in models
        for order in range(3 if model != "bayesame" else 1)
    ]
    return list(run_tasks(tasks, table, simulators, jobs=1))


def run(
    name: str, regime: PlanRegime, models: list[str], options: argparse.Namespace
) -> Iterator[dict[str, object]]:
    forecasts: dict[tuple[str, float], list[Forecast]] = defaultdict(list)
    truths: dict[tuple[str, float], list[Stops]] = defaultdict(list)
    for draw, split in splits(name, regime, options.draws, options.hidden_gap):
        table = split.references(1.0, seed=0)
        stop = rule(len(table.items))
        settings = PlanSettings(
            models=tuple(models),
            stop=stop,
            regimes=(regime,),
            gap=options.gap,
            targets=options.targets,
            more=None,
            jobs=1,
            seed=1000 * draw,
        )
        for found in make_plan(table, settings).forecasts:
            forecasts[found.model, found.width].append(found)
        happened = happens(split, regime, models)
        for model in models:
            of = [done for done in happened if done.task.model == model]
            for factor in FACTORS:
                width = factor * stop.width
                truths[model, width].append(find_stops(of, replace(stop, width=width)))
    for key, found in forecasts.items():
        yield {"set": name, "regime": regime, **compare(key, found, truths[key])}


def compare(
    key: tuple[str, float], forecasts: list[Forecast], truths: list[Stops]
) -> dict[str, object]:
    """Pooled forecast and truth, and whether the one is near the other."""
    # A target of two draws is two targets here: its references differ.
    targets = [f"{d}/{t}" for d, stops in enumerate(truths) for t in stops.targets]
    weights = resampled(targets, seed=0)
    items = estimate(np.concatenate([s.items for s in truths]), weights)
    squares = np.concatenate([s.errors for s in truths]) ** 2
    rmse = estimate(squares, weights, np.sqrt)
    planned = float(np.mean([f.items.value for f in forecasts]))
    error = float(np.sqrt(np.mean([f.rmse.value**2 for f in forecasts])))
    same = abs(error - rmse.value) < TINY * WIDTH
    return {
        "model": key[0],
        "width": key[1],
        "draws": len(forecasts),
        "items_plan": planned,
        "items_true": items.model_dump(),
        "items_ratio": planned / items.value,
        "items_within_25": abs(planned / items.value - 1) <= 0.25,
        "rmse_plan": error,
        "rmse_true": rmse.model_dump(),
        "rmse_ratio": error / rmse.value if rmse.value > 1e-9 else None,
        "rmse_within_30": same or abs(error / max(rmse.value, 1e-9) - 1) <= 0.3,
        "rmse_in_interval": rmse.low <= error <= rmse.high,
        "coverage_plan": float(np.mean([f.coverage.value for f in forecasts])),
        "coverage_true": float(np.mean(np.concatenate([s.covered for s in truths]))),
    }


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--models", default=",".join(DEFAULT_MODELS))
    parser.add_argument("--regimes", default="interpolation,extrapolation")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--targets", type=int, default=40)
    parser.add_argument("--gap", type=float, default=0.0)
    parser.add_argument("--hidden-gap", type=float, default=0.0)
    options = parser.parse_args()
    for name in options.sets.split(","):
        for regime in options.regimes.split(","):
            for record in run(name, regime, options.models.split(","), options):
                emit(benchmark="plan_forecast", **record)


if __name__ == "__main__":
    main()
