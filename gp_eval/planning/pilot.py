"""What a run of each model costs here, measured before the work is laid out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gp_eval.data import References
from gp_eval.experiments.curves import Simulator
from gp_eval.planning.folds import interpolation_folds
from gp_eval.planning.tasks import Task, run_tasks

__all__ = ["LARGE", "PILOT_ITEMS", "affordable_items", "run_pilot"]

LARGE = 1000
"""Items up to which runs are simulated to the end."""

PILOT_ITEMS = 200
"""Items of a pilot run on a larger set."""

_RUNS = 4
_GROWTH = 2.0


def run_pilot(
    references: References,
    simulators: Mapping[str, Simulator],
    *,
    n_max: int,
    jobs: int,
    seed: int,
) -> tuple[dict[str, float], dict[str, str]]:
    """Seconds of a run to ``n_max`` for each model, and reasons of refusals.

    On a set of more than a thousand items the pilot ends after 200, and what is left is
    taken to cost with the square of the number of items, which is rather too much.
    """
    n_items = len(references.items)
    n_pilot = n_max if n_items <= LARGE else min(n_max, PILOT_ITEMS)
    fold = interpolation_folds(references, n_targets=1, n_max=n_pilot, seed=seed)[0]
    fold = replace(fold, targets=fold.targets[:_RUNS])
    seconds: dict[str, float] = {}
    refused: dict[str, str] = {}
    tasks = [Task(model, fold, n_pilot) for model in simulators]
    for done in run_tasks(tasks, references, simulators, jobs=jobs):
        if done.refused is not None:
            refused[done.task.model] = done.refused
            continue
        a_run = done.seconds / len(fold.targets)
        seconds[done.task.model] = a_run * (n_max / n_pilot) ** _GROWTH
    return {model: seconds[model] for model in simulators if model in seconds}, refused


def affordable_items(
    n_max: int, seconds: Mapping[str, float], *, runs: int, budget_s: float
) -> tuple[int, dict[str, float]]:
    """Items that ``runs`` runs of every model can evaluate in the time.

    Args:
        n_max: Items that ``seconds`` are about.
        seconds: Seconds of one run of each model.
        runs: The fewest runs that say anything.
        budget_s: Seconds of all processes together.

    Returns:
        The number, at most ``n_max`` and at least that of the pilot, in hundreds, and
        the seconds of a run to it.
    """
    needed = runs * sum(seconds.values())
    if n_max <= PILOT_ITEMS or needed <= budget_s:
        return n_max, dict(seconds)
    most = n_max * (budget_s / needed) ** (1.0 / _GROWTH)
    items = min(n_max, max(PILOT_ITEMS, int(most // 100) * 100))
    share = (items / n_max) ** _GROWTH
    return items, {model: share * cost for model, cost in seconds.items()}
