"""CPU milliseconds of a step: our ProEval and the published package, side by side.

    pip install proeval==0.1.1
    OMP_NUM_THREADS=1 python benchmarks/proeval_step.py

IFEval, 50 % of the references, all 541 items: the published package plans and
estimates, ours is conditioned on the same selections one by one, choosing an item at
every step as well. Their labels are errors, ours are scores.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from _common import emit, one_thread, shared_references

from gp_eval.experiments import interpolation
from gp_eval.models import make_model


def published(
    scores: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Selections, estimates, variances and CPU seconds of proeval 0.1.1."""
    from proeval.sampler.bq import BQPriorSampler

    start = time.process_time()
    plan = BQPriorSampler(noise_variance=0.3).plan(1 - scores, budget=len(scores))
    result = plan.estimate(1 - target[list(plan.indices)])
    spent = time.process_time() - start
    return plan.indices, 1 - result.estimates, result.integral_variance, spent


def main() -> None:
    one_thread()
    split = interpolation(shared_references("benchpred_ifeval"))
    references = split.references(0.5, seed=0)
    target = split.target_scores()[0]
    indices, estimates, variances, theirs = published(
        references.scores.numpy(), target.numpy()
    )
    model = make_model("proeval", references)
    everything = torch.arange(541).unsqueeze(-1)
    means, spreads = [], []
    start = time.process_time()
    for item in np.asarray(indices).tolist():
        acquisition = model.acquisition()
        acquisition.of_items(everything).argmax()
        model.condition(torch.tensor([item]), target[item : item + 1])
        belief = model.performance()
        means.append(float(belief.mean))
        spreads.append(float(belief.variance))
    ours = time.process_time() - start
    emit(
        benchmark="proeval_step",
        data="benchpred_ifeval",
        N=541,
        K=len(references.models),
        cpu_ms_per_step_ours=round(1e3 * ours / 541, 3),
        cpu_ms_per_step_published=round(1e3 * theirs / 541, 3),
        times_faster=round(theirs / ours, 1),
        largest_difference_of_estimates=float(np.abs(means - estimates).max()),
        largest_relative_difference_of_variances=float(
            np.abs(np.array(spreads) / variances - 1).max()
        ),
    )


if __name__ == "__main__":
    main()
