"""CPU milliseconds of one step: ours, an ExactGP refit, and get_fantasy_model.

    OMP_NUM_THREADS=1 python benchmarks/step.py

All three end with what the next decision needs: posterior mean and variance of every
bucket and its covariance with the sum over unevaluated items, from which Eq. (2) and
Eq. (6) follow. One process, the same data (IFEval, 50 % of the references), the same
selections; they must agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from _common import emit, one_thread, shared_references

from gp_eval.data import Buckets
from gp_eval.experiments import interpolation
from gp_eval.models import BucketGP, SequentialBucketModel
from gp_eval.settings import exact_inference

Answer = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def best_ms(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def difference(a: Answer, b: Answer) -> float:
    return max(float((x - y).abs().max()) for x, y in zip(a, b, strict=True))


def main() -> None:
    one_thread()
    split = interpolation(shared_references("benchpred_ifeval"))
    references = split.references(0.5, seed=0)
    target = split.target_scores()[0]
    buckets = Buckets.from_references(references)
    inputs = buckets.inputs
    everything = torch.arange(541)
    order = torch.randperm(541, generator=torch.Generator().manual_seed(0))

    def gp(items: torch.Tensor) -> BucketGP:
        model = BucketGP(
            inputs[buckets.item_bucket[items]], target[items].unsqueeze(-1)
        )
        model.likelihood.noise = 1e-4
        return model.eval()

    def read(model: BucketGP, remaining: torch.Tensor) -> Answer:
        posterior = model(inputs)
        covariance = posterior.covariance_matrix
        return posterior.mean, covariance.diagonal(), covariance @ remaining

    for n in (50, 135, 270, 486):
        model = SequentialBucketModel(buckets, noise=1e-4)
        for item in order[:n].tolist():
            model.append(item, float(target[item]))
        state, item = model.engine.snapshot(), int(order[n])
        bucket, noise = int(buckets.item_bucket[item]), model._noise_of[item]

        def ours(
            model=model, state=state, item=item, bucket=bucket, noise=noise
        ) -> Answer:
            engine = model.engine
            engine.append(bucket, float(target[item]), noise, 1.0)
            model._memo.clear()
            model.squared_correlation(everything)
            return engine.mean, engine.variance, engine.covariance_with_rest

        times = []
        for _ in range(20):
            model.engine.restore(
                tuple(torch.clone(s) if torch.is_tensor(s) else s for s in state)
            )
            start = time.process_time()
            answer = ours()
            times.append(time.process_time() - start)
        remaining = model.engine.remaining
        with torch.no_grad(), exact_inference():
            base = gp(order[:n])
            base(inputs).mean  # noqa: B018 - fills the caches that fantasies start from
            new = order[n : n + 1]

            def refit(n=n, remaining=remaining) -> Answer:
                return read(gp(order[: n + 1]), remaining)

            def fantasy(base=base, new=new, remaining=remaining) -> Answer:
                model = base.get_fantasy_model(
                    inputs[buckets.item_bucket[new]], target[new]
                )
                return read(model, remaining)

            emit(
                benchmark="step",
                data="benchpred_ifeval",
                N=541,
                B=buckets.n_buckets,
                K=len(references.models),
                n=n,
                cpu_ms_ours=round(1e3 * min(times), 4),
                cpu_ms_exact_gp_refit=round(best_ms(refit, 3), 2),
                cpu_ms_get_fantasy_model=round(best_ms(fantasy, 3), 2),
                times_faster_than_refit=round(best_ms(refit, 3) / (1e3 * min(times))),
                times_faster_than_fantasy=round(
                    best_ms(fantasy, 3) / (1e3 * min(times))
                ),
                difference_to_refit=difference(answer, refit()),
                difference_to_fantasy=difference(answer, fantasy()),
            )


if __name__ == "__main__":
    main()
