# %% [markdown]
# # From Eq. (6) to your own acquisition function
#
# Which item next? BayesAME takes the one that tells most about the benchmark score.
# This tutorial writes that rule out, turns it into one of its own in BoTorch's style,
# which also minds what an item costs, and ends with batches of 8 for a model server.

# %%
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.optim.optimize import optimize_acqf_discrete
from botorch.utils.transforms import concatenate_pending_points, t_batch_mode_transform

import gp_eval as ge
from gp_eval.acquisition import optimize_batch
from gp_eval.datasets import load_digits_benchmark
from gp_eval.report.curves import matplotlib_figure

SMOKE = bool(os.environ.get("GP_EVAL_SMOKE"))
folder = Path(tempfile.mkdtemp())

everything = load_digits_benchmark("probability")
target = "knn5_n400_r1"
references = everything.without([target])
items = references.items
scores = everything.subset(models=[target]).scores[:, 0]

# %% [markdown]
# ## Eq. (6), literally
#
# The model is a joint Gaussian belief about the scores of all items and their mean `R`.
# Three of its moments are all that selection needs. Here it has seen 40 items.

# %%
bayesame = ge.BayesAME(references)
seen = torch.arange(0, len(items), len(items) // 40)[:40]
bayesame.condition(seen, scores[seen])
model = bayesame.model

everywhere = torch.arange(len(items))
left = torch.ones(len(items), dtype=torch.bool)
left[seen] = False
candidates = everywhere[left]
covariance = model.performance_covariance(candidates)  # Cov(R, s_i)
variance = model.score_variance(candidates)  # Var(s_i)
share = covariance.square() / variance / model.performance_variance()
gain = -0.5 * torch.log1p(-share)
print("most informative item:", items[candidates[gain.argmax()]])

# %% [markdown]
# The same as a BoTorch acquisition function: inputs are item indices, `b x q x 1`, and
# BoTorch's optimizer over discrete choices finds the same item.

# %%
choices = candidates.double().unsqueeze(-1)
builtin = ge.qPerformanceInformationGain(model)
best, value = optimize_acqf_discrete(builtin, q=1, choices=choices)
assert int(best) == int(candidates[gain.argmax()])
torch.testing.assert_close(value, gain.max())

# %% [markdown]
# ## One of your own
#
# Items differ in price: a long generation costs more than a short one. This function is
# the gain of a batch (Appendix B.1 of the paper) divided by its cost. Two things make
# it at home in BoTorch: the decorators, which add pending items and a missing batch
# dimension, and `set_X_pending`.
#
# `of_items` is optional. With it, selection hands over integer indices and conditions
# the model itself on what is pending, which is faster; the model must then be read at
# each call, as here.


# %%
class GainPerCost(AcquisitionFunction):
    """Information about the benchmark score per unit of cost."""

    def __init__(self, model, cost, X_pending=None):
        super().__init__(model=model)
        self.cost = torch.as_tensor(cost, dtype=torch.float64)
        self.set_X_pending(X_pending)

    @concatenate_pending_points
    @t_batch_mode_transform()
    def forward(self, X):
        """Values (shape `b`) of item indices `b x q x 1`."""
        return self.of_items(X.squeeze(-1).long())

    def of_items(self, items):
        """Values (shape `b`) of integer item indices `b x q`."""
        c = self.model.performance_covariance(items).unsqueeze(-1)
        explained = (c * torch.linalg.solve(self.model.score_covariance(items), c)).sum(
            (-2, -1)
        )
        share = explained / self.model.performance_variance()
        # The last item explains everything, and log 0 is infinite.
        share = share.clamp_max(1.0 - torch.finfo(share.dtype).eps)
        return -0.5 * torch.log1p(-share) / self.cost[items].sum(-1)


# %% [markdown]
# With equal costs it is the built-in one; with others it prefers what is cheap.

# %%
equal = GainPerCost(model, torch.ones(len(items), dtype=torch.float64))
torch.testing.assert_close(equal(choices.unsqueeze(1)), gain)

generator = torch.Generator().manual_seed(0)
cost = torch.randn(len(items), generator=generator, dtype=torch.float64).exp()
own = GainPerCost(model, cost)
best, _ = optimize_acqf_discrete(own, q=1, choices=choices)
print(
    f"gain per cost: {items[int(best)]}, cost {float(cost[int(best)]):.2f} "
    f"(median {float(cost.median()):.2f})"
)

# %% [markdown]
# The package has it as well, with BoTorch's cost-aware utilities: `Session.create(...,
# costs=...)`, `gp-eval start --costs`. Pending items differ: their cost is spent either
# way, so that only what a batch adds to them is weighed, and free items come first.

# %%
per_cost = ge.qGainPerCost(builtin, ge.inverse_cost(cost))
torch.testing.assert_close(per_cost(choices.unsqueeze(1)), own(choices.unsqueeze(1)))

# %% [markdown]
# A run with it: a model of the harness says by `acquisition()` how items are chosen.
# `super().acquisition()` fits the kernel when that is due.


# %%
class CostAware(ge.BayesAME):
    """BayesAME that minds the cost of items."""

    def __init__(self, references, *, cost):
        super().__init__(references)
        self.per_cost = GainPerCost(self.model, cost)

    def acquisition(self):
        """Gain per cost where items are chosen at all."""
        return None if super().acquisition() is None else self.per_cost


place = {item: i for i, item in enumerate(items)}


def run_my_model(item: str) -> float:
    """Stands for your evaluator."""
    return float(scores[place[item]])


rule = ge.StoppingRule(width=0.02, stable=0.01, max_items=30 if SMOKE else 400)
for name, chosen in (
    ("gain", ge.BayesAME(references)),
    ("gain per cost", CostAware(references, cost=cost)),
):
    result = ge.evaluate(references, run_my_model, model=chosen, stop=rule)
    spent = float(cost[[place[item] for item in result.items]].sum())
    print(
        f"{name:14} {result.mean:.4f} +- {result.width / 2:.4f} after {result.n:3} "
        f"items, cost {spent:6.1f}; truth {float(scores.mean()):.4f}"
    )

# %% [markdown]
# The interval is the model's own and may miss the truth: see "When it stops" in the
# README.
#
# `ge.register_model("cost-aware", CostAware)` makes it a name for simulations and, with
# the costs as a list in `model_options`, for sessions; see `own_method.py`.
#
# ## A batch of 8 for a model server
#
# A server answers 8 prompts as fast as one. The best 8 items together are not the 8
# best ones, which tell much the same. `optimize_batch` starts from the greedy batch,
# LARS, a k-DPP and clusters, and improves them by swaps; no batch it returns is worth
# less than the greedy one. `trace` is the best value after every round.

# %%
greedy = optimize_batch(builtin, 8, left, method="greedy")
search = optimize_batch(builtin, 8, left, seed=0)
eight_best = candidates[gain.topk(8).indices]
print("8 best items:   ", float(builtin.of_items(eight_best.unsqueeze(0))))
print("greedy batch:   ", greedy.value)
print("searched batch: ", search.value, [items[i] for i in search.items])

# %%
weak = {
    start: optimize_batch(builtin, 8, left, starts=[start], seed=0)
    for start in ("lars", "dpp", "kmeans")
}
figure = matplotlib_figure()(figsize=(6, 3.5))
axis = figure.subplots()
axis.plot(search.trace, linewidth=6, alpha=0.3, label="all starts")
for name, result in weak.items():
    axis.plot(result.trace, marker=".", label=name)
axis.axhline(greedy.value, color="grey", linestyle="--", label="greedy")
axis.set_xlabel("round of the search")
axis.set_ylabel("information gain, nats")
axis.legend()
figure.tight_layout()
figure.savefig(folder / "trace.png")
print(folder / "trace.png")

# %% [markdown]
# In a session that is the option `batch`. While a batch is out, `ask` counts it as
# evaluated, so that a fast server can be given the next one before. From the shell:
# `gp-eval start run/ --refs ... --target ... --option batch=8`, then `gp-eval ask run/
# -n 8`.

# %%
session = ge.Session.create(
    folder / "run",
    references,
    target=target,
    model_options={"batch": 8},
    stop=ge.StoppingRule(width=0.02, stable=0.01, max_items=24 if SMOKE else 200),
)
with ThreadPoolExecutor(8) as server:
    while not session.done:
        batch = session.pending or session.ask(8)
        session.tell_all(dict(zip(batch, server.map(run_my_model, batch), strict=True)))
result = session.estimate()
print(
    f"{result.mean:.4f} [{result.low:.4f}, {result.high:.4f}] after {result.n} items: "
    f"{result.stop_reason}; truth {float(scores.mean()):.4f}"
)
session.close()

# %% [markdown]
# `optimize_batch` is for the two acquisitions that Eq. (12) orders. For one of your
# own, selection of several items is greedy: `session.ask(8)` does it, and so does
# BoTorch's `optimize_acqf_discrete(..., q=8)`.

# %%
for points in torch.split(optimize_acqf_discrete(own, q=3, choices=choices)[0], 1):
    print("greedy, per cost:", items[int(points)])
