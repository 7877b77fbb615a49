"""Which simulator runs which model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.experiments.batched.multi_target import simulate_multi_target
from gp_eval.experiments.curves import Curves, Simulator
from gp_eval.loop import EvaluationLoop
from gp_eval.models.protocol import MultiTargetModel, PerformanceModel
from gp_eval.models.registry import (
    check_options,
    make_model,
    takes_seed,
    takes_targets,
)
from gp_eval.stopping import StoppingRule

__all__ = ["make_simulator", "simulate_one_by_one"]

_BATCHED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bayesame": ("bayesame", "simulate_bayesame", {}),
    "bayesame-rs": ("bayesame", "simulate_bayesame", {"selection": "random"}),
    "rs-mean": ("random_mean", "simulate_random_mean", {}),
    "seq-apw": ("anchor_points", "simulate_anchor_points", {}),
    "aipw": ("aipw", "simulate_aipw", {}),
    "bayes-aipw": ("aipw", "simulate_bayesian_aipw", {}),
    "rs-learn": ("regression", "simulate_random_sampling_learn", {}),
    "bayes-rs-learn": ("regression", "simulate_bayesian_random_sampling_learn", {}),
    "proeval": ("proeval", "simulate_proeval", {}),
    "irt-2pl": ("irt", "simulate_irt_2pl", {}),
    "irt-beta": ("irt", "simulate_irt_beta", {}),
}


def make_simulator(
    model: str,
    options: Mapping[str, Any] | None = None,
    *,
    factory: Callable[..., PerformanceModel] | None = None,
) -> Simulator:
    """The batched simulator of a model, or one that runs the model itself.

    Args:
        model: Registered name.
        options: Options of the model.
        factory: Builds the model, for one that workers do not have registered.

    Raises:
        ValueError: For an unknown model or option.
    """
    options = dict(options or {})
    check_options(model, options)
    build: Callable[..., Any] = partial(
        factory or partial(make_model, model), **options
    )
    if takes_targets(model):
        seeded = takes_seed(model) and "seed" not in options
        return partial(_simulate_jointly, build, seeded)
    if model not in _BATCHED:
        return partial(simulate_one_by_one, build)
    module, name, preset = _BATCHED[model]
    batched = getattr(import_module(f"gp_eval.experiments.batched.{module}"), name)
    if not set(options) <= set(inspect.signature(batched).parameters):
        return partial(simulate_one_by_one, build)  # such as a kernel of one's own
    return partial(_simulate, partial(batched, **{**preset, **options}), build)


def _simulate_jointly(
    build: Callable[..., MultiTargetModel],
    seeded: bool,
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
) -> Curves:
    # What the model draws has to differ from seed to seed, as the order does.
    seed = {"seed": int(order[0]) * order.shape[0] + int(order[-1])} if seeded else {}

    def of_targets(references: References, n_targets: int) -> MultiTargetModel:
        return build(references, n_targets=n_targets, **seed)

    return simulate_multi_target(of_targets, references, scores, order, n_max=n_max)


def _simulate(
    batched: Simulator,
    build: Callable[[References], PerformanceModel],
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
) -> Curves:
    """Lock-step where items weigh the same, target by target otherwise."""
    if references.is_weighted:
        return simulate_one_by_one(build, references, scores, order, n_max=n_max)
    return batched(references, scores, order, n_max=n_max)


def simulate_one_by_one(
    build: Callable[[References], PerformanceModel],
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
) -> Curves:
    """Curves of any model, target by target, through the harness protocol.

    Args:
        build: Makes a fresh model of one target.
        references: References of all runs.
        scores: Scores of the targets, ``R x N``.
        order: Order of random selection, shape ``N``.
        n_max: Number of items to evaluate.
    """
    never = StoppingRule(width=torch.finfo(torch.float64).tiny)
    means, variances, dofs = [], [], []
    for row in scores.tolist():
        loop = EvaluationLoop(build(references), references, stop=never, order=order)
        variance: list[float] = []
        dof: list[float] = []
        while len(variance) < n_max:
            for item in loop.ask(min(loop.per_iteration, n_max - len(variance))):
                loop.tell(item, row[item])
                variance.append(loop.variance)
                dof.append(loop.dof)
        means.append(loop.estimates)
        variances.append(variance)
        dofs.append(dof)
    degrees = torch.tensor(dofs, dtype=torch.float64)
    return Curves(
        torch.tensor(means, dtype=torch.float64),
        torch.tensor(variances, dtype=torch.float64),
        None if bool(degrees.isposinf().all()) else degrees,
    )
