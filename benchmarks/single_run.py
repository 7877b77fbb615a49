"""One full run n = 1..N of BayesAME: CPU seconds of selections, fits, all.

    OMP_NUM_THREADS=1 python benchmarks/single_run.py            # IFEval, binary
    OMP_NUM_THREADS=1 python benchmarks/single_run.py --large    # N = 1890, continuous

IFEval is real data at 50 % of the references (K = 219). The large run is synthetic:
no real continuous set has its size.
"""

from __future__ import annotations

import argparse

import torch
from _common import Stopwatch, emit, one_thread, peak_mb, shared_references

from gp_eval.acquisition import select_items
from gp_eval.data import References
from gp_eval.experiments import interpolation
from gp_eval.models import BayesAME


def synthetic(n_items: int, n_references: int) -> tuple[References, torch.Tensor]:
    """Continuous scores from a few latent traits, and one target."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    size = n_references + 1
    traits = normal(n_items, 4) @ normal(4, size) * 0.5
    p = torch.sigmoid(normal(n_items, 1) + 0.8 * normal(1, size) + traits)
    scores = (p + 0.03 * normal(n_items, size)).clamp(0, 1)
    references = References(
        scores[:, :-1],
        [f"q{i}" for i in range(n_items)],
        [f"m{k}" for k in range(n_references)],
    )
    return references, scores[:, -1].clone()


def full_run(
    references: References, target: torch.Tensor, parametrization: str
) -> dict[str, float]:
    """CPU seconds by part, and how exact the end is."""
    watch = Stopwatch()
    n_items = len(references.items)
    with watch("setup"):
        model = BayesAME(references, parametrization=parametrization)
    order = torch.randperm(n_items, generator=torch.Generator().manual_seed(0))
    rank, available = torch.argsort(order), torch.ones(n_items, dtype=torch.bool)
    buckets = model.model.buckets
    for _ in range(n_items):
        with watch("fit_and_refresh"):
            acquisition = model.acquisition()
        with watch("select_and_append"):
            item = select_items(
                acquisition, available, q=1, same_as=buckets.item_bucket, rank=rank
            )[0]
            available[item] = False
            model.condition(torch.tensor([item]), target[item : item + 1])
            belief = model.performance()
    watch.seconds["total"] = sum(watch.seconds.values())
    return {
        **{f"cpu_s_{name}": round(s, 3) for name, s in watch.seconds.items()},
        "n_updates": len(model.updates),
        "end_error": abs(float(belief.mean) - float(target.mean())),
        "end_variance": float(belief.variance),
        "B": buckets.n_buckets,
    }


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="N = 1890, K = 77")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parametrization", default="raw", choices=["raw", "log"])
    options = parser.parse_args()
    before = peak_mb()
    if options.large:
        references, target = synthetic(1890, 77)
    else:
        split = interpolation(shared_references("benchpred_ifeval"))
        references = split.references(0.5, seed=0)
        target = split.target_scores()[0].clone()
    runs = [
        full_run(references, target, options.parametrization)
        for _ in range(1 if options.large else options.repeats)
    ]
    best = min(runs, key=lambda run: run["cpu_s_total"])
    emit(
        benchmark="single_run",
        data="synthetic continuous" if options.large else "benchpred_ifeval",
        N=len(references.items),
        K=len(references.models),
        parametrization=options.parametrization,
        best_of=len(runs),
        **best,
        peak_mb=round(peak_mb()),
        peak_mb_above_imports=round(peak_mb() - before),
    )


if __name__ == "__main__":
    main()
