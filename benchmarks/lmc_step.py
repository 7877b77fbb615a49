"""One step of training and one append for ten targets, beside GPyTorch.

    OMP_NUM_THREADS=1 python benchmarks/lmc_step.py

Value and gradient of the marginal likelihood at L = T = 10 and K = 46, 541 buckets:
the closed form, autograd through our kernel with the factorisation in closed form, and
GPyTorch's own path (sums of products with index kernels, ExactMarginalLogLikelihood).
Then an append among 5,410 pairs at n = 2,000. With a GPU the same rows on it, in
float64 and wall-clock time, and the ratios; without one that part is skipped.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import gpytorch
import torch
from _common import emit, one_thread

from gp_eval.data import Buckets
from gp_eval.kernels import LMCKernel, default_latents, hadamard_lmc
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.models import (
    MultiTargetGP,
    SequentialMultiTargetModel,
    multi_target_inputs,
)
from gp_eval.optim import PairScores
from gp_eval.optim.lmc_objective import AutogradLMCObjective, ClosedFormLMCObjective
from gp_eval.settings import exact_inference

B, K, T = 541, 46, 10


def make_buckets(device: str) -> Buckets:
    """Unique buckets, as with continuous scores."""
    generator = torch.Generator().manual_seed(0)
    phi = torch.rand(B, K, generator=generator, dtype=torch.float64)
    ones = torch.ones(B, dtype=torch.float64)
    return Buckets(phi, ones, torch.arange(B), ones).to(device)


def seconds(run: Callable[[], object], device: str, repeats: int) -> float:
    """Per call: CPU time on the CPU, wall-clock time on a GPU."""
    run()
    clock = time.perf_counter if device == "cuda" else time.process_time
    if device == "cuda":
        torch.cuda.synchronize()
    start = clock()
    for _ in range(repeats):
        run()
    if device == "cuda":
        torch.cuda.synchronize()
    return (clock() - start) / repeats


def training(n: int, device: str, *, with_gpytorch: bool) -> dict[str, float]:
    """Seconds of a value with its gradient at ``n`` evaluations, by method."""
    buckets = make_buckets(device)
    generator = torch.Generator().manual_seed(1)
    pair = torch.randperm(B * T, generator=generator)[:n].to(device)
    score = torch.rand(n, generator=generator, dtype=torch.float64).to(device)
    prior_mean = buckets.phi.mean(1).repeat(T)
    scores = PairScores.from_scores(pair, score, prior_mean, buckets.counts)
    kernel = LMCKernel(default_latents(T), T).to(buckets.phi)
    likelihood = BucketGaussianLikelihood(count_dim=-2).to(buckets.phi)
    closed = ClosedFormLMCObjective(kernel, likelihood, buckets.phi, scores)
    auto = AutogradLMCObjective(kernel, likelihood, buckets.phi, scores)
    values = torch.cat([p.detach().reshape(-1) for _, p, _, _ in closed.parameters()])
    found = {
        "closed_form_s": seconds(lambda: closed(values), device, 5),
        "autograd_s": seconds(lambda: auto(values), device, 2),
    }
    if with_gpytorch:
        rows = multi_target_inputs(buckets, T).view(T * B, -1)[pair]
        model = MultiTargetGP(
            rows,
            score.unsqueeze(-1),
            n_targets=T,
            covar_module=hadamard_lmc(default_latents(T), T, K),
        )
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

        def step() -> None:
            with exact_inference():
                model.train()
                loss = -mll(model(rows), model.train_targets, rows)
                loss.backward()

        found["gpytorch_s"] = seconds(step, device, 1)
    return found


def append(n: int, device: str) -> float:
    """Seconds of one append, with all that the next decision needs, after ``n``."""
    model = SequentialMultiTargetModel(make_buckets(device), n_targets=T)
    generator = torch.Generator().manual_seed(2)
    points = torch.randperm(B * T, generator=generator)[: n + 21].tolist()
    score = torch.rand(n + 21, generator=generator, dtype=torch.float64).tolist()
    model.take_in(points[:n], score[:n])
    model.refresh()
    fresh = iter(zip(points[n:], score[n:], strict=True))

    def step() -> None:
        model.append(*next(fresh))
        model.performance_variance()

    return seconds(step, device, 20)


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="540,1500")
    parser.add_argument(
        "--no-gpytorch", action="store_true", help="leave out the slowest column"
    )
    options = parser.parse_args()
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for n in map(int, options.sizes.split(",")):
        figures = {
            device: training(n, device, with_gpytorch=not options.no_gpytorch)
            for device in devices
        }
        row: dict[str, object] = dict(figures)
        cpu = figures["cpu"]
        if "gpytorch_s" in cpu:
            row["gpytorch_over_closed_form"] = cpu["gpytorch_s"] / cpu["closed_form_s"]
        if "cuda" in figures:
            gpu = figures["cuda"]["closed_form_s"]
            row["cpu_over_cuda"] = cpu["closed_form_s"] / gpu
        emit(what="marginal likelihood and gradient", n=n, L=T, T=T, **row)
    appends = {device: append(2000, device) for device in devices}
    ratio = (
        {"cpu_over_cuda": appends["cpu"] / appends["cuda"]} if "cuda" in appends else {}
    )
    emit(what="append", n=2000, pairs=B * T, seconds=appends, **ratio)
    if devices == ["cpu"]:
        emit(what="cuda", skipped="no GPU on this machine")


if __name__ == "__main__":
    main()
