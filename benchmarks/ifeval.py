"""Evaluation-weighted integrated RMSE on IFEval beside the paper's Table 1.

    OMP_NUM_THREADS=1 python benchmarks/ifeval.py --seeds 4 --draws 1

The paper's own data, 50 % of the references, 10 targets. RS-Mean is exact (closed
form). In interpolation the targets are a random draw, on which all figures depend.
"""

from __future__ import annotations

import argparse
import time

import torch
from _common import emit, one_thread, shared_references

from gp_eval.data import References
from gp_eval.experiments import (
    Split,
    evaluation_weighted_rmse,
    extrapolation,
    interpolation,
    random_sample_rmse,
)
from gp_eval.loop import EvaluationLoop
from gp_eval.models import make_model
from gp_eval.stopping import StoppingRule

PUBLISHED = {
    "interpolation": {"bayesame": 49.53, "bayesame-rs": 56.14, "rs-mean": 72.45},
    "extrapolation": {"bayesame": 58.08, "bayesame-rs": 58.08, "rs-mean": 64.54},
}


def squared_errors(
    model: str, references: References, scores: torch.Tensor, seed: int
) -> torch.Tensor:
    """Squared error after n = 1..N items of one run, shape N."""
    never = StoppingRule(width=1e-9)
    loop = EvaluationLoop(
        make_model(model, references), references, stop=never, seed=seed
    )
    for _ in range(scores.shape[0]):
        item = loop.ask()[0]
        loop.tell(item, float(scores[item]))
    estimates = torch.tensor(loop.estimates, dtype=torch.float64)
    return (estimates - scores.mean()).square()


def pooled(squares: torch.Tensor) -> float:
    """The metric of a set of runs, ``R x N`` squared errors."""
    return float(evaluation_weighted_rmse(squares.mean(0).sqrt()))


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--draws", type=int, default=1, help="draws of targets")
    parser.add_argument("--models", default="bayesame,bayesame-rs")
    options = parser.parse_args()
    scores = shared_references("benchpred_ifeval")
    for regime in PUBLISHED:
        splits: list[Split] = (
            [interpolation(scores, target_seed=d) for d in range(options.draws)]
            if regime == "interpolation"
            else [extrapolation(scores)]
        )
        targets = [split.target_scores() for split in splits]
        random = [random_sample_rmse(table).square() for table in targets]
        figures = {"rs-mean": pooled(torch.cat(random))}
        start = time.process_time()
        for model in options.models.split(","):
            squares = [
                squared_errors(model, references, row, seed)
                for split, table in zip(splits, targets, strict=True)
                for seed in range(options.seeds)
                for references in [split.references(0.5, seed=seed)]
                for row in table
            ]
            figures[model] = pooled(torch.stack(squares))
        emit(
            benchmark="ifeval",
            regime=regime,
            seeds=options.seeds,
            target_draws=len(splits),
            targets=10,
            ewi_rmse={name: round(value, 2) for name, value in figures.items()},
            published=PUBLISHED[regime],
            cpu_s=round(time.process_time() - start, 1),
        )


if __name__ == "__main__":
    main()
