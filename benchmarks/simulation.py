"""CPU seconds of one simulated run n = 1..N, for every model, in one process.

    OMP_NUM_THREADS=1 python benchmarks/simulation.py --seeds 1

IFEval, 10 targets in lock-step, 50 % of the references.
"""

from __future__ import annotations

import argparse
import time

from _common import emit, one_thread, shared_references

from gp_eval._random import random_order
from gp_eval.experiments import interpolation
from gp_eval.experiments.simulators import make_simulator
from gp_eval.models import model_names


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--models", default=",".join(model_names()))
    options = parser.parse_args()
    split = interpolation(shared_references("benchpred_ifeval"))
    targets = split.target_scores()
    n_targets, n_items = targets.shape
    for model in options.models.split(","):
        simulator = make_simulator(model)
        spent = 0.0
        try:
            for seed in range(options.seeds):
                references = split.references(0.5, seed=seed)
                order = random_order(n_items, seed)
                start = time.process_time()
                simulator(references, targets, order, n_max=n_items)
                spent += time.process_time() - start
        except ValueError as error:  # such as Beta scores on right / wrong data
            emit(benchmark="simulation", model=model, refused=str(error))
            continue
        runs = options.seeds * n_targets
        emit(
            benchmark="simulation",
            data="benchpred_ifeval",
            N=n_items,
            targets=n_targets,
            seeds=options.seeds,
            model=model,
            cpu_s_total=round(spent, 3),
            cpu_s_per_run=round(spent / runs, 4),
        )


if __name__ == "__main__":
    main()
