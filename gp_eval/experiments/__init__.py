"""Experiments: splits, metrics and what else compares models of the harness."""

from gp_eval.experiments.metrics import (
    evaluation_weighted_rmse,
    random_sample_rmse,
    rmse_curve,
)
from gp_eval.experiments.splits import (
    Split,
    chronological,
    extrapolation,
    high_correlation,
    interpolation,
)

__all__ = [
    "Split",
    "chronological",
    "evaluation_weighted_rmse",
    "extrapolation",
    "high_correlation",
    "interpolation",
    "random_sample_rmse",
    "rmse_curve",
]
