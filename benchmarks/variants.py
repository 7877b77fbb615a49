"""Evaluation-weighted integrated RMSE of the logit-normal models beside BayesAME.

    OMP_NUM_THREADS=1 python benchmarks/variants.py --seeds 2

IFEval, interpolation, 50 % of the references, 10 targets: the paper's own data for
BayesAME (Table 2). For the logit-normal models it has a figure on GPQA only, on which
they do worse with either selection; ``theta`` is how the mean ability is approximated.
A model is given as ``name`` or ``name:theta``. All models see the same seeds.
"""

from __future__ import annotations

import argparse
import time

import torch
from _common import emit, one_thread, shared_references

from gp_eval._random import random_order
from gp_eval.experiments import evaluation_weighted_rmse, interpolation
from gp_eval.experiments.simulators import make_simulator

PUBLISHED = {"bayesame": 49.53, "bayesame-rs": 56.14}
MODELS = (
    "bayesame,bayesame-rs,bayesame-logit,bayesame-logit-rs,"
    "bayesame-logit:probit,bayesame-logit-rs:probit"
)


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="benchpred_ifeval")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--models", default=MODELS)
    options = parser.parse_args()
    split = interpolation(shared_references(options.data), target_seed=0)
    targets = split.target_scores()[: options.targets]
    n_items = targets.shape[1]
    for name in options.models.split(","):
        model, _, theta = name.partition(":")
        simulator = make_simulator(model, {"theta": theta} if theta else {})
        start, squares, worst = time.process_time(), [], 0.0
        for seed in range(options.seeds):
            references = split.references(0.5, seed=seed)
            order = random_order(n_items, seed)
            curves = simulator(references, targets, order, n_max=n_items)
            errors = curves.mean - targets.mean(1, keepdim=True)
            squares.append(errors.square())
            worst = max(worst, float(errors[:, -1].abs().max()))
        rmse = torch.cat(squares).mean(0).sqrt()
        emit(
            benchmark="variants",
            data=options.data,
            regime="interpolation",
            model=model,
            theta=theta or ("linear" if "logit" in model else None),
            seeds=options.seeds,
            targets=targets.shape[0],
            ewi_rmse=round(float(evaluation_weighted_rmse(rmse)), 2),
            published=PUBLISHED.get(name) if "ifeval" in options.data else None,
            largest_error_at_the_end=worst,
            cpu_s_per_run=round(
                (time.process_time() - start) / options.seeds / targets.shape[0], 2
            ),
        )


if __name__ == "__main__":
    main()
