"""From settings to a list of simulations, and what they will take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import joblib

from gp_eval.data import References
from gp_eval.errors import GpEvalError
from gp_eval.experiments.curves import Simulator
from gp_eval.experiments.simulators import make_simulator
from gp_eval.models.registry import model_factory
from gp_eval.planning.folds import curve_sizes, extrapolation_folds
from gp_eval.planning.layout import FEWEST_RUNS, Amount, amount, lay_out, share_runs
from gp_eval.planning.pilot import LARGE, affordable_items, run_pilot
from gp_eval.planning.settings import PlanSettings
from gp_eval.planning.tasks import Task

__all__ = ["Outlook", "Work", "prepare"]


_PATIENCE = 1.1
"""The machine may turn out slower than in the pilot: what is late is left out."""


@dataclass(frozen=True)
class Outlook:
    """What lies ahead, once the pilot is done.

    Attributes:
        seconds: How long it will take, by the clock.
        runs: Simulated runs of each model.
        n_max: Items evaluated in each.
        jobs: Processes.
    """

    seconds: float
    runs: dict[str, int]
    n_max: int
    jobs: int


@dataclass(frozen=True)
class Work:
    """Simulations to do.

    Attributes:
        tasks: What to simulate.
        simulators: What runs each model.
        seconds: Seconds of one run of each model, measured.
        n_max: Items evaluated in a run.
        jobs: Processes.
        refused: Models that refuse the references, and why.
        limit_s: Seconds after which nothing more is begun.
    """

    tasks: list[Task]
    simulators: Mapping[str, Simulator]
    seconds: Mapping[str, float]
    n_max: int
    jobs: int
    refused: dict[str, str]
    limit_s: float

    def cost(self, task: Task) -> float:
        """Expected seconds of a task."""
        return self.seconds[task.model] * len(task.fold.targets)

    @property
    def outlook(self) -> Outlook:
        """How much it is."""
        runs = dict.fromkeys(self.seconds, 0)
        for task in self.tasks:
            runs[task.model] += len(task.fold.targets)
        total = sum(map(self.cost, self.tasks))
        return Outlook(total / self.jobs, runs, self.n_max, self.jobs)


def prepare(references: References, settings: PlanSettings) -> Work:
    """Measure what a run costs, and lay out what fits into the time.

    Raises:
        GpEvalError: If every model refuses these references.
    """
    jobs = joblib.cpu_count() if settings.jobs is None else settings.jobs
    cap = min(len(references.items), settings.n_max or LARGE)
    strongest = _count_strongest(references, settings, cap)
    simulators = {
        name: make_simulator(name, factory=model_factory(name))
        for name in settings.models
    }
    seconds, refused = run_pilot(
        references, simulators, n_max=cap, jobs=jobs, seed=settings.seed
    )
    if not seconds:
        raise GpEvalError(
            "models: every model refuses these references: "
            + "; ".join(f"{name}: {why}" for name, why in refused.items())
        )
    if settings.n_max is None and len(references.items) > LARGE:
        cap, seconds = affordable_items(
            cap,
            seconds,
            runs=FEWEST_RUNS + strongest,
            budget_s=settings.budget_s * jobs,
        )
    amounts = _amounts(references, settings, seconds, jobs, strongest)
    tasks = lay_out(
        references, amounts, gap=settings.gap, n_max=cap, seed=settings.seed
    )
    limit = _PATIENCE * settings.budget_s if settings.targets is None else math.inf
    return Work(tasks, simulators, seconds, cap, jobs, refused, limit)


def _count_strongest(references: References, settings: PlanSettings, cap: int) -> int:
    """Targets of the extrapolation, after checking that there can be one."""
    if "extrapolation" not in settings.regimes:
        return 0
    folds = extrapolation_folds(
        references, gap=settings.gap, n_max=cap, repeats=1, seed=settings.seed
    )
    return sum(len(fold.targets) for fold in folds)


def _amounts(
    references: References,
    settings: PlanSettings,
    seconds: Mapping[str, float],
    jobs: int,
    strongest: int,
) -> dict[str, Amount]:
    has_curve = settings.more is not None and bool(
        curve_sizes(len(references.models) - 1)
    )
    if settings.targets is None:
        runs = share_runs(seconds, budget_s=settings.budget_s, jobs=jobs)
        return {
            model: amount(
                runs[model],
                regimes=settings.regimes,
                strongest=strongest,
                has_curve=has_curve,
            )
            for model in seconds
        }
    fixed = Amount(
        settings.targets if "interpolation" in settings.regimes else 0,
        2 if strongest else 0,
        settings.targets // 2 if has_curve else 0,
    )
    return dict.fromkeys(seconds, fixed)
