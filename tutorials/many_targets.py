# %% [markdown]
# # Ten checkpoints at once
#
# Models of one family fail on the same items. A joint prior learns how alike they are
# and lets what one shows tell about the others. This tutorial evaluates ten classifiers
# of the embedded digits benchmark together, says which is better, and ends with latent
# kernels of its own and training on a GPU.

# %%
import os
import tempfile
from pathlib import Path

import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

import gp_eval as ge
from gp_eval.datasets import load_digits_benchmark
from gp_eval.experiments import high_correlation
from gp_eval.report.comparison import plot_comparison

SMOKE = bool(os.environ.get("GP_EVAL_SMOKE"))
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## Ten targets that are alike
#
# `high_correlation` takes the ten most correlated classifiers as targets; the others
# are the references. In earnest your targets are new and the references are all you
# have scores of.

# %%
everything = load_digits_benchmark("probability")
split = high_correlation(everything, n_targets=3 if SMOKE else 10)
references = split.references(0.5, seed=0)
scores = dict(zip(split.targets, split.target_scores(), strict=True))
place = {item: i for i, item in enumerate(references.items)}


def run_my_model(target: str, item: str) -> float:
    """Stands for your evaluator."""
    return float(scores[target][place[item]])


# %% [markdown]
# ## One session
#
# First all targets are evaluated on the same random items, a tenth of the benchmark:
# from them the correlation is learned. Then they take turns, each with the item that
# tells most about its own score. A target that has met the rule gets no more items.

# %%
rule = ge.StoppingRule(width=0.03, stable=0.005, max_items=50 if SMOKE else 300)
options = {"initial": 0.05, "steps": 20} if SMOKE else {}
session = ge.MultiTargetSession.create(
    folder / "run",
    references,
    targets=list(split.targets),
    stop=rule,
    model_options=options,
)
while not session.done:
    for target, item in session.pending or session.ask(8):
        session.tell(target, item, run_my_model(target, item))
for result in session.estimates():
    truth = float(scores[result.target].mean())
    print(
        f"{result.target:24} {result.mean:.4f} [{result.low:.4f}, {result.high:.4f}] "
        f"truth {truth:.4f} after {result.n} of {result.N}: {result.stop_reason}"
    )

# %% [markdown]
# ## Which one is better
#
# The errors of alike targets are alike and cancel in the difference, so that the joint
# belief separates models whose own intervals overlap.

# %%
belief = session.performance()
comparison = ge.compare(list(split.targets), belief.mean, belief.covariance)
for entry in comparison.ranking:
    print(f"{entry.ranks:>6}  {entry.name}")
print(plot_comparison(comparison, folder / "comparison.png"))
session.close()

# %% [markdown]
# ## What the prior has learned
#
# The model itself, without a session, gives access to the kernel. The covariance of two
# targets is the sum over latents of the products of their weights; signs and scales of
# single weights mean nothing.

# %%
model = ge.MultiTargetBayesAME(references, n_targets=2, steps=20 if SMOKE else 500)
first = split.targets[:2]
items = torch.arange(0, len(place), 10)
for t, target in enumerate(first):
    rows = torch.stack([items, torch.full_like(items, t)], dim=-1)
    model.condition(rows, scores[target][items])
model.refit()
weights = model.model.covar_module.task_weights.detach()
variances = torch.stack([k.alpha.squeeze() for k in model.model.covar_module.latents])
covariance = (weights.T * variances.detach()) @ weights
correlation = covariance[0, 1] / covariance.diag().prod().sqrt()
print(f"correlation of the abilities {float(correlation):.2f}")

# %% [markdown]
# ## Latent kernels of your own
#
# Any list of GPyTorch kernels over reference score vectors will do. Three latents for
# two targets: what they share, and room for what they do not.

# %%
latents = [
    ScaleKernel(RBFKernel()),
    ScaleKernel(MaternKernel(nu=2.5)),
    ge.ReferenceMaternKernel(),
]
own = ge.MultiTargetBayesAME(
    references, n_targets=2, latents=latents, steps=5 if SMOKE else 200
)
for t, target in enumerate(first):
    rows = torch.stack([items, torch.full_like(items, t)], dim=-1)
    own.condition(rows, scores[target][items])
own.refit()
print("own latents:", own.performance().mean, own.performance().std)

# %% [markdown]
# The trained model can be kept: parameters, scores and the fingerprint of the
# references, so that it is not put to other data by mistake.

# %%
model.save(folder / "trained.npz")
again = ge.MultiTargetBayesAME(references, n_targets=2)
again.load(folder / "trained.npz")
torch.testing.assert_close(again.performance().mean, model.performance().mean)

# %% [markdown]
# ## On a GPU
#
# A step of training costs the cube of the number of all evaluations;
# `benchmarks/lmc_step.py` prints what that means on your machine. `device="cuda"` puts
# tables, training and posterior on the GPU. It computes in double precision, so that a
# data-centre card is what helps.

# %%
if torch.cuda.is_available():
    fast = ge.MultiTargetBayesAME(references, n_targets=10, device="cuda")
    print(fast.model.engine.mean.device)
