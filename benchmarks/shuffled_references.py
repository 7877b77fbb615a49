"""What a model loses on references that tell nothing.

    OMP_NUM_THREADS=1 python benchmarks/shuffled_references.py --draws 10

The scores of every model of a set are put in an order of its own, so that no item is
like itself in another model. Each draw has other orders, ten other targets, and half of
the rest as references. A JSON line for each set and model: evaluation-weighted
integrated RMSE over that of the mean of a random sample, which is known in closed form,
with its standard error by the jackknife over draws.
"""

from __future__ import annotations

import argparse

import torch
from _common import emit, one_thread, shared_references
from rich.progress import Progress
from torch import Tensor

from gp_eval._random import random_order
from gp_eval.cli.output import progress_console
from gp_eval.data import References
from gp_eval.experiments.clusters import Clusters, jackknife_standard_error
from gp_eval.experiments.metrics import evaluation_weighted_rmse, random_sample_rmse
from gp_eval.experiments.simulators import make_simulator
from gp_eval.experiments.splits import interpolation

SETS = (
    "terminalbench2,benchpred_rte,benchpred_commonsense,swebench_verified,"
    "benchpred_mmlu,benchpred_ifeval"
)


def shuffled(table: References, *, seed: int) -> References:
    """The same scores of every model, each in another order of the items."""
    generator = torch.Generator().manual_seed(seed)
    orders = torch.rand(table.scores.shape, generator=generator).argsort(0)
    scores = table.scores.gather(0, orders)
    return References(scores, list(table.items), list(table.models))


def draw(table: References, model: str, *, seed: int) -> tuple[Tensor, Tensor]:
    """Mean squared errors by ``n`` of the model and of a random sample."""
    split = interpolation(shuffled(table, seed=seed), n_targets=10, target_seed=seed)
    references, targets = split.references(0.5, seed=seed), split.target_scores()
    n_items = targets.shape[1]
    curves = make_simulator(model)(
        references, targets, random_order(n_items, seed), n_max=n_items
    )
    errors = curves.mean - targets.mean(1, keepdim=True)
    return errors.square().mean(0), random_sample_rmse(targets).square().mean(0)


def compare(name: str, model: str, draws: int) -> dict[str, object]:
    table = shared_references(name)
    with Progress(console=progress_console(), transient=True) as bars:
        seeds = bars.track(range(draws), description=f"{name}, {model}")
        found = [draw(table, model, seed=seed) for seed in seeds]
    both = [torch.stack(squares) for squares in zip(*found, strict=True)]

    def log_ratio(kept: Tensor) -> Tensor:
        share = kept / kept.sum(-1, keepdim=True)
        own, other = (evaluation_weighted_rmse((share @ s).sqrt()) for s in both)
        return (own / other).log()

    ratio = float(log_ratio(torch.ones(draws).double()).exp())
    error = jackknife_standard_error(log_ratio, Clusters.of(range(draws), range(draws)))
    return {
        "set": name,
        "model": model,
        "draws": draws,
        "ratio": ratio,
        "ratio_se": ratio * float(error),
    }


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--models", default="population,bayesame")
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    for name in options.sets.split(","):
        for model in options.models.split(","):
            found = compare(name, model, options.draws)
            emit(benchmark="shuffled_references", **found)


if __name__ == "__main__":
    main()
