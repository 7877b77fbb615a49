"""How much can be simulated in the time there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gp_eval.data import References
from gp_eval.planning.folds import (
    Fold,
    PlanRegime,
    curve_sizes,
    extrapolation_folds,
    fewer_references,
    interpolation_folds,
)
from gp_eval.planning.tasks import Task

__all__ = ["FEWEST_RUNS", "Amount", "amount", "lay_out", "share_runs"]

MOST_RUNS = 240
FEWEST_RUNS = 10
_MOST_REPEATS = 3
_MOST_ON_CURVE = 48
_FEWEST_ON_CURVE = 8


@dataclass(frozen=True)
class Amount:
    """Runs of one model.

    Attributes:
        interpolation: Runs with random targets.
        repeats: How often the strongest are run, each time in another order.
        on_curve: Runs for each smaller number of references.
    """

    interpolation: int
    repeats: int
    on_curve: int


def share_runs(
    seconds: Mapping[str, float], *, budget_s: float, jobs: int
) -> dict[str, int]:
    """Runs of each model such that all take about the same time, and ``budget_s`` all.

    What a cheap model does not use, because there is a most, goes to the others.

    Args:
        seconds: Seconds of one run of each model.
        budget_s: Time for everything, by the clock.
        jobs: Processes.
    """
    left, runs = budget_s * jobs, {}
    by_cost = sorted(seconds, key=lambda model: seconds[model])
    for place, model in enumerate(by_cost):
        share = left / (len(by_cost) - place)
        cost = max(seconds[model], 1e-9)
        # 119.999 are 120, if only rounding is missing.
        runs[model] = int(min(MOST_RUNS, max(FEWEST_RUNS, share / cost + 1e-3)))
        left -= runs[model] * cost
    return {model: runs[model] for model in seconds}


def amount(
    runs: int, *, regimes: Sequence[PlanRegime], strongest: int, has_curve: bool
) -> Amount:
    """Split the runs of a model over regimes and the curve.

    Args:
        runs: All of them.
        regimes: What is asked for.
        strongest: Targets of the extrapolation.
        has_curve: Whether there are references enough for a curve.
    """
    if "interpolation" not in regimes:
        return Amount(0, max(1, min(_MOST_REPEATS, runs // strongest)), 0)
    repeats = 0
    if "extrapolation" in regimes:
        repeats = max(1, min(_MOST_REPEATS, runs // (5 * strongest)))
    rest = max(FEWEST_RUNS, runs - repeats * strongest)
    on_curve = min(_MOST_ON_CURVE, rest // 4) if has_curve else 0
    if on_curve < _FEWEST_ON_CURVE:  # the forecast comes first
        on_curve = 0
    return Amount(max(FEWEST_RUNS, rest - 2 * on_curve), repeats, on_curve)


def lay_out(
    references: References,
    amounts: Mapping[str, Amount],
    *,
    gap: float,
    n_max: int,
    seed: int,
) -> list[Task]:
    """All tasks, those of the forecast before those of the curve."""
    forecast: list[Task] = []
    curve: list[Task] = []
    for model, amount in amounts.items():
        inside = _inside(references, amount.interpolation, n_max, seed)
        outside: list[Fold] = []
        if amount.repeats:
            outside = extrapolation_folds(
                references, gap=gap, n_max=n_max, repeats=amount.repeats, seed=seed
            )
        forecast += [Task(model, fold, n_max) for fold in (*inside, *outside)]
        runs = 0
        for fold in inside:
            if runs >= amount.on_curve:
                break
            runs += len(fold.targets)
            curve += [
                Task(model, fewer_references(fold, size), n_max)
                for size in curve_sizes(len(fold.pool))
            ]
    return _firsts_first(forecast) + curve


def _firsts_first(tasks: Sequence[Task]) -> list[Task]:
    """The first task of each model and regime before all others: it is always run."""
    firsts = {(t.model, t.fold.regime): t for t in reversed(tasks)}
    rest = [t for t in tasks if firsts[t.model, t.fold.regime] is not t]
    return [*reversed(firsts.values()), *rest]


def _inside(references: References, runs: int, n_max: int, seed: int) -> list[Fold]:
    if not runs:
        return []
    return interpolation_folds(references, n_targets=runs, n_max=n_max, seed=seed)
