"""A plan: what evaluating a new model will cost and give, from the references alone."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from gp_eval.data import References
from gp_eval.errors import GpEvalError
from gp_eval.planning.content import Forecast, Plan, ReferenceCurve
from gp_eval.planning.folds import Fold, check_table
from gp_eval.planning.forecast import forecast
from gp_eval.planning.recommend import FACTORS, recommend
from gp_eval.planning.reference_curve import reference_curve
from gp_eval.planning.settings import PlanSettings, wanted_width
from gp_eval.planning.tasks import Done, run_tasks
from gp_eval.planning.work import Outlook, Work, prepare
from gp_eval.stopping import StoppingRule

__all__ = ["Watch", "make_plan"]


class Watch(Protocol):
    """Who wants to know how far it is."""

    def begin(self, outlook: Outlook) -> None:
        """The pilot is done, the simulations begin."""

    def advance(self, share: float) -> None:
        """So much of the whole, from 0 to 1, was done since the last call."""


def make_plan(
    references: References,
    settings: PlanSettings | None = None,
    *,
    watch: Watch | None = None,
) -> Plan:
    """Leave references out, evaluate them as if they were new, and see what happens.

    Args:
        references: The user's table, without missing cells.
        settings: What is asked, and how much work may go into it.
        watch: Told of progress.

    Raises:
        DataError: For missing cells or too few references.
        GpEvalError: If every model refuses these references.

    Example:
        >>> plan = make_plan(references, PlanSettings(stop=StoppingRule(width=0.02)))
        >>> print(plan.recommendation.model, plan.recommendation.items)
    """
    settings = settings or PlanSettings()
    check_table(references)
    start = time.perf_counter()
    work = prepare(references, settings)
    results, refused = _simulate(work, references, watch)
    stop, seed = settings.stop, settings.seed
    forecasts = [f for of in results.values() for f in _forecasts(of, stop, seed)]
    curves = [_curve(of, settings, len(references.models)) for of in results.values()]
    return Plan(
        fingerprint=references.fingerprint,
        n_items=len(references.items),
        n_references=len(references.models),
        width=wanted_width(stop),
        stable=stop.stable,
        window=stop.window,
        gap=settings.gap,
        n_max=work.n_max,
        seed=seed,
        seconds=time.perf_counter() - start,
        forecasts=forecasts,
        curves=[curve for curve in curves if curve is not None],
        refused=refused,
        recommendation=recommend(forecasts, stop),
    )


def _simulate(
    work: Work, references: References, watch: Watch | None
) -> tuple[dict[str, list[Done]], dict[str, str]]:
    """Results of each model in the order of its tasks, and reasons of refusals."""
    if watch is not None:
        watch.begin(work.outlook)
    total = sum(map(work.cost, work.tasks))
    found: dict[tuple[str, Fold], Done] = {}
    refused = dict(work.refused)
    for done in run_tasks(
        work.tasks,
        references,
        work.simulators,
        jobs=work.jobs,
        seconds=work.limit_s,
    ):
        found[done.task.model, done.task.fold] = done
        if done.refused is not None:
            refused[done.task.model] = done.refused
        if watch is not None:
            watch.advance(work.cost(done.task) / total)
    results = {
        model: [
            found[model, task.fold]
            for task in work.tasks
            if task.model == model and (model, task.fold) in found
        ]
        for model in work.seconds
        if model not in refused
    }
    if not results:
        raise GpEvalError(f"models: every model refuses these references: {refused}")
    return results, refused


def _forecasts(
    results: Sequence[Done], stop: StoppingRule, seed: int
) -> list[Forecast]:
    """Of one model, by regime, the asked width first."""
    whole = [done for done in results if done.task.fold.size is None]
    regimes = dict.fromkeys(done.task.fold.regime for done in whole)
    return [
        forecast(
            [done for done in whole if done.task.fold.regime == regime],
            replace(stop, width=factor * wanted_width(stop)),
            asked=wanted_width(stop),
            seed=seed,
        )
        for regime in regimes
        for factor in FACTORS
    ]


def _curve(
    results: Sequence[Done], settings: PlanSettings, n_references: int
) -> ReferenceCurve | None:
    """The curve of one model, if it was simulated with fewer references."""
    groups: dict[Fold, list[Done]] = defaultdict(list)
    for done in results:
        groups[replace(done.task.fold, size=None)].append(done)
    # From few references to all; time may have run out in the middle of a fold.
    sizes = max(map(len, groups.values()))
    complete = [
        sorted(group, key=lambda done: done.task.fold.n_references)
        for group in groups.values()
        if len(group) == sizes
    ]
    if sizes <= 2 or settings.more is None:
        return None
    return reference_curve(
        list(zip(*complete, strict=True)),
        settings.stop,
        n_references=n_references,
        more=settings.more,
        seed=settings.seed,
    )
