# %% [markdown]
# # From a table of scores to a stopped session
#
# You have the scores of earlier models on every item of a benchmark, and a new model
# whose score you want without running all items. This tutorial takes the embedded
# digits benchmark as the table and one of its classifiers as the new model.

# %%
import os
import tempfile
from pathlib import Path

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel

import gp_eval as ge
from gp_eval.datasets import load_digits_benchmark
from gp_eval.report.curves import Curve, plot_curves

SMOKE = bool(os.environ.get("GP_EVAL_SMOKE"))
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## The table
#
# Items are rows, models are columns. Scores may be right / wrong or any real number;
# here each is the probability a classifier gave to the true digit.

# %%
everything = load_digits_benchmark("probability")
target = "knn5_n400_r1"
references = everything.without([target])
print(references)
print(references.frame.iloc[:3, :4])

# %% [markdown]
# Items with the same row form a *bucket*. With rich scores nearly every item is its
# own bucket, and items can be chosen actively. With few references and right / wrong
# scores buckets are large, and BayesAME chooses at random.

# %%
buckets = ge.Buckets.from_references(references)
print(
    f"{buckets.n_items} items, {buckets.n_buckets} buckets, unique: {buckets.unique()}"
)

# %% [markdown]
# ## Ask and tell
#
# A session lives in a folder. Whatever you tell it is on disk before `tell` returns.

# %%
truth = dict(
    zip(
        everything.items,
        everything.subset(models=[target]).scores[:, 0].tolist(),
        strict=True,
    )
)


def run_my_model(item: str) -> float:
    """Stands for your evaluator."""
    return truth[item]


rule = ge.StoppingRule(width=0.03, stable=0.005, max_items=40 if SMOKE else None)
session = ge.Session.create(folder / "run", references, target=target, stop=rule)
for item in session.ask(5):
    session.tell(item, run_my_model(item))
print(session.estimate())

# %% [markdown]
# ## Interrupt and resume
#
# Suppose the machine dies here, with three items handed out and not yet told. Opening
# the folder replays the events. Pending items are not handed out again: run them first.

# %%
waiting = session.ask(3)
session.close()

session = ge.Session.open(folder / "run")
assert session.pending == waiting
for item in session.pending:
    session.tell(item, run_my_model(item))

# %% [markdown]
# ## Until it stops
#
# Between two hyperparameter updates the choice of items does not depend on scores, so a
# batch of 8 costs nothing against one at a time.

# %%
while not session.done:
    for item in session.pending or session.ask(8):
        session.tell(item, run_my_model(item))
result = session.estimate()
session.close()
full = sum(truth.values()) / len(truth)
print(f"stopped after {result.n} of {result.N} items: {result.stop_reason}")
print(f"estimate {result.mean:.4f} [{result.low:.4f}, {result.high:.4f}]")
print(f"full benchmark {full:.4f}")

# %%
picture = plot_curves(
    [
        Curve(
            title=target,
            estimates=result.estimates,
            widths=result.widths,
            truth=full,
            n_items=result.N,
            stop_reason=result.stop_reason,
        )
    ],
    folder / "session.png",
)
print(picture)

# %% [markdown]
# ## Your own kernel
#
# The prior says that the target behaves alike on items which the references scored
# alike. How alike is a GPyTorch kernel over the rows of the table; any one will do. Its
# hyperparameters are fitted every 50 items, by autograd.

# %%
kernel = ScaleKernel(MaternKernel(nu=1.5))
model = ge.BayesAME(references, covar_module=kernel)
matern = ge.evaluate(references, run_my_model, target=target, model=model, stop=rule)
print(f"Matern: {matern.mean:.4f} after {matern.n} items, truth {full:.4f}")

# %% [markdown]
# A kernel class of your own needs nothing but `forward`. This one adds to Eq. (1) of
# the paper a part that depends on the mean score alone.


# %%
class DifficultyKernel(ge.ReferenceScoreKernel):
    """Items of the same mean reference score are alike, whoever solved them."""

    def forward(self, x1, x2, diag=False, **params):
        """Eq. (1) on the mean reference score in place of the whole vector."""
        means = [x.mean(-1, keepdim=True) for x in (x1, x2)]
        return super().forward(*means, diag=diag, **params)


sum_kernel = ge.ReferenceScoreKernel() + DifficultyKernel()
model = ge.BayesAME(references, covar_module=sum_kernel)
own = ge.evaluate(references, run_my_model, target=target, model=model, stop=rule)
print(f"Own kernel: {own.mean:.4f} after {own.n} items, truth {full:.4f}")

# %% [markdown]
# The same kernel works in the idiomatic `BucketGP`, an `ExactGP` and BoTorch model, for
# everything those libraries can do with one.

# %%
evaluated = [everything.items.index(item) for item in own.items]
X = buckets.inputs[buckets.item_bucket[evaluated]]
Y = torch.tensor([truth[i] for i in own.items], dtype=torch.float64).unsqueeze(-1)
gp = ge.BucketGP(X, Y, covar_module=sum_kernel)
gp.likelihood.noise = 1e-4
with torch.no_grad(), ge.exact_inference():
    abilities = gp.posterior(buckets.inputs).mean
print(f"mean ability over all buckets {float(abilities.mean()):.4f}")
