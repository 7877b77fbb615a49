"""CPU seconds of DISCO's selection scores: streamed, and by the dense formula.

    OMP_NUM_THREADS=1 python benchmarks/disco_scores.py

400 models x 14,042 items x 4 classes (the size of MMLU) of random probabilities: PDS
and JSD in one streamed pass, and beside it, in the same process, the formulas written
down over the whole array. They must agree. Memory is the growth of the process's peak.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from _common import emit, one_thread, peak_mb

from gp_eval.disco import disagreement_of_probabilities, disagreement_order

Scores = tuple[torch.Tensor, torch.Tensor]


def dense(probabilities: torch.Tensor) -> Scores:
    values = probabilities.double()
    values = values / values.sum(-1, keepdim=True)
    mean = values.mean(0, keepdim=True)
    divergence = torch.xlogy(values, values / mean).sum(-1).mean(0)
    return values.amax(0).sum(-1), divergence


def streamed(probabilities: torch.Tensor) -> Scores:
    scores = disagreement_of_probabilities(probabilities)
    return scores.pds, scores.jsd


def measure(function: Callable[[], Scores], repeats: int) -> tuple[Scores, float]:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        seconds.append(time.process_time() - start)
    return result, min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=400)
    parser.add_argument("--items", type=int, default=14_042)
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    one_thread()
    shape = (arguments.models, arguments.items, arguments.classes)
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.softmax(2.0 * torch.randn(shape, generator=generator), -1)
    start = peak_mb()
    ours, seconds = measure(lambda: streamed(probabilities), arguments.repeats)
    after_ours = peak_mb()
    theirs, dense_seconds = measure(lambda: dense(probabilities), arguments.repeats)
    after_dense = peak_mb()
    emit(
        benchmark="disco_scores",
        K=shape[0],
        N=shape[1],
        C=shape[2],
        input_mb=round(probabilities.numel() * 4 / 2**20, 1),
        cpu_s_streamed=round(seconds, 3),
        cpu_s_dense=round(dense_seconds, 3),
        times_faster=round(dense_seconds / seconds, 2),
        extra_mb_streamed=round(after_ours - start, 1),
        extra_mb_dense=round(after_dense - start, 1),
        peak_mb_streamed=round(after_ours, 1),
        max_difference=max(
            float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True)
        ),
        same_top_100=all(
            disagreement_order(a)[:100].tolist() == disagreement_order(b)[:100].tolist()
            for a, b in zip(ours, theirs, strict=True)
        ),
    )


if __name__ == "__main__":
    main()
