"""CPU seconds of one optimal batch of q items among |U| candidates.

    OMP_NUM_THREADS=1 python benchmarks/batch_search.py

Synthetic score vectors, all different, 50 references; 100 items are evaluated before,
so that N = |U| + 100. Medians over seeds, and greedy beside them. ``--data NAME`` takes
the candidates of a real set from the shared folder instead, half of its models as
references.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from _common import emit, one_thread, shared_references

from gp_eval._random import random_order
from gp_eval.acquisition import optimize_batch, qPerformanceInformationGain
from gp_eval.data import Buckets, References
from gp_eval.models import SequentialBucketModel

EVALUATED = 100


def synthetic(n_items: int, seed: int) -> References:
    """Items and models in two dimensions, one of them ability, scores 0 .. 1."""
    generator = torch.Generator().manual_seed(seed)
    item, model = (
        torch.randn(n, 2, generator=generator, dtype=torch.float64)
        for n in (n_items, 50)
    )
    noise = torch.randn(n_items, 50, generator=generator, dtype=torch.float64)
    scores = torch.sigmoid(item @ model.T + 0.5 * noise)
    names = [f"q{i}" for i in range(n_items)], [f"m{k}" for k in range(50)]
    return References(scores, *names)


def conditioned(references: References, seed: int, evaluated: int):
    """A model of ``alpha = beta = 1`` after some random items, and what is left."""
    model = SequentialBucketModel(Buckets.from_references(references), noise=1e-4)
    available = torch.ones(model.n_items, dtype=torch.bool)
    for item in random_order(model.n_items, seed)[:evaluated].tolist():
        model.append(item, 0.5)
        available[item] = False
    return qPerformanceInformationGain(model), available


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--q", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--candidates", default="300,600,1200,2400")
    parser.add_argument("--evaluated", type=int, default=EVALUATED)
    parser.add_argument("--data")
    options = parser.parse_args()
    sizes = [int(size) for size in options.candidates.split(",")]
    if options.data:
        real = shared_references(options.data)
        real = real.subset(models=real.models[::2])
        sizes = [len(real.items) - options.evaluated]
    for size in sizes:
        seconds, greedy, over, rounds = [], [], [], []
        for seed in range(options.seeds + 1):  # the first warms up
            references = (
                real if options.data else synthetic(size + options.evaluated, seed)
            )
            gain, available = conditioned(references, seed, options.evaluated)
            start = time.process_time()
            best = optimize_batch(gain, options.q, available, seed=seed)
            seconds.append(time.process_time() - start)
            start = time.process_time()
            least = optimize_batch(gain, options.q, available, method="greedy")
            greedy.append(time.process_time() - start)
            over.append(best.value / least.value)
            rounds.append(len(best.trace) - 1)
        emit(
            benchmark="batch_search",
            data=options.data or "synthetic",
            q=options.q,
            candidates=size,
            n=options.evaluated,
            seeds=options.seeds,
            cpu_s=round(statistics.median(seconds[1:]), 4),
            cpu_s_most=round(max(seconds[1:]), 4),
            cpu_s_greedy=round(statistics.median(greedy[1:]), 4),
            rounds=statistics.median(rounds[1:]),
            value_over_greedy=round(statistics.median(over[1:]), 5),
            value_over_greedy_most=round(max(over[1:]), 5),
        )


if __name__ == "__main__":
    main()
