"""From runs at their stop to what a new target can expect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gp_eval.planning.bootstrap import estimate, resampled, wilson
from gp_eval.planning.content import Forecast, Quantiles
from gp_eval.planning.recommend import acceptable
from gp_eval.planning.settings import wanted_width
from gp_eval.planning.stops import find_stops
from gp_eval.planning.tasks import Done
from gp_eval.stopping import StoppingRule

__all__ = ["forecast"]


def forecast(
    results: Sequence[Done], stop: StoppingRule, *, asked: float, seed: int
) -> Forecast:
    """Items, error and coverage at the stop, over all runs of a model and a regime.

    Args:
        results: Finished tasks of one model and one regime.
        stop: The rule, with the width that is tried.
        asked: The width that the user asked for, which error is measured by.
        seed: Seed of the resampling.
    """
    runs = find_stops(results, stop)
    weights = resampled(runs.targets, seed=seed)
    n_targets = len(set(runs.targets))
    rmse = estimate(runs.errors**2, weights, np.sqrt)
    coverage = wilson(float(runs.covered.mean()), n_targets)
    stopped = float(runs.stopped.mean())
    q10, q50, q90 = np.quantile(runs.items, [0.1, 0.5, 0.9]).tolist()
    sizes = [d.task.fold.n_references for d in results for _ in d.task.fold.targets]
    return Forecast(
        model=results[0].task.model,
        regime=results[0].task.fold.regime,
        width=wanted_width(stop),
        items=estimate(runs.items, weights),
        spread=Quantiles(q10=q10, q50=q50, q90=q90),
        narrow=float(runs.narrow.mean()),
        projected=float(runs.projected.mean()),
        rmse=rmse,
        coverage=coverage,
        stopped=stopped,
        runs=len(runs.targets),
        targets=n_targets,
        references=float(np.mean(sizes)),
        acceptable=acceptable(
            rmse=rmse.value, coverage=coverage.value, stopped=stopped, asked=asked
        ),
    )
