# %% [markdown]
# # Your own method beside BayesAME
#
# The harness runs anything that can take in scores and say what it believes about the
# full-benchmark score. This tutorial adds a method in 20 lines, runs it on the same
# seeds and targets as others, and reads the comparison.

# %%
import os
import tempfile
from pathlib import Path

import torch

from gp_eval import Performance, register_model
from gp_eval.datasets import load_digits_benchmark
from gp_eval.experiments.cells import plan_cells
from gp_eval.experiments.figures import plot_summaries
from gp_eval.experiments.simulate import simulate
from gp_eval.experiments.store import read_result
from gp_eval.experiments.summary import summarise

SMOKE = bool(os.environ.get("GP_EVAL_SMOKE"))
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## The method
#
# A difference estimator: what the references score on average predicts each item, and
# the sample corrects the prediction by the mean residual. Its variance is that of a
# mean of residuals, without replacement. `acquisition` is `None`: choose at random.


# %%
class DifferenceEstimator:
    """Mean reference score, shifted by the mean residual of the sample."""

    def __init__(self, references):
        self.prediction = references.scores.mean(1)
        self.residuals = []

    def condition(self, items, scores):
        """Take in items and their scores."""
        self.residuals += (scores - self.prediction[items]).tolist()

    def performance(self):
        """Estimate and variance of the benchmark score."""
        n, n_items = len(self.residuals), len(self.prediction)
        r = torch.tensor(self.residuals, dtype=torch.float64)
        mean = self.prediction.mean() + (r.mean() if n else 0.0)
        spread = r.var() if n > 1 else torch.tensor(0.25, dtype=torch.float64)
        return Performance(mean, spread / max(n, 1) * (1 - n / n_items))

    def acquisition(self):
        """Choose at random."""
        return None


register_model("difference", DifferenceEstimator)

# %% [markdown]
# ## The comparison
#
# A *cell* is one model on one reference set; targets, references and random orders
# follow from its seeds, so all models see the same. Finished cells are files in the
# folder and are not done again, so use a new folder when you change the method.
# `jobs=2` would use two processes, and inside `joblib.parallel_config(backend="dask")`
# the cells go to a Dask cluster.

# %%
scores = load_digits_benchmark("probability")
cells = plan_cells(
    ["digits"],
    models=["difference", "bayesame", "bayesame-rs"],
    regimes=["interpolation"],
    reference_fractions=[0.5],
    seeds=1 if SMOKE else 4,
    n_targets=2 if SMOKE else 10,
    draws=1,
    n_max=60 if SMOKE else 300,
)
for done, _ in enumerate(simulate(cells, {"digits": scores}, folder), start=1):
    print(f"{done} of {len(cells)} cells", end="\r")

# %% [markdown]
# ## What came out
#
# RMSE in score points and coverage of the 95 % interval, at some shares of the items.

# %%
summaries = summarise(read_result(folder / cell.path) for cell in cells)
print(f"{'model':14} {'n/N':>5} {'RMSE':>8} {'coverage':>9}")
for summary in summaries:
    record = summary.record()
    for share, rmse in record["rmse"].items():
        print(
            f"{summary.model:14} {share:>5} {rmse:8.4f} "
            f"{record['coverage'][share]:9.2f}"
        )

# %% [markdown]
# Stopping rules are applied to the stored curves, so thresholds cost no new runs.

# %%
for summary in summaries:
    stop = summary.stops[-1]
    print(
        f"{summary.model:14} stopping at width {stop.width}: "
        f"{stop.mean_fraction:.0%} of the items, RMSE {stop.rmse:.4f}, "
        f"coverage {stop.coverage:.2f}"
    )
print(*plot_summaries(summaries, folder / "comparison"))
