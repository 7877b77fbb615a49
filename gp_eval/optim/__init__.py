"""Hyperparameter optimisation."""

from gp_eval.optim.adamw import Progress, fit_adamw, step_schedule
from gp_eval.optim.lbfgsb import Fit, fit_kernel
from gp_eval.optim.lmc_objective import make_lmc_objective
from gp_eval.optim.objective import make_objective, negative_log_marginal_likelihood
from gp_eval.optim.pair_scores import PairScores

__all__ = [
    "Fit",
    "PairScores",
    "Progress",
    "fit_adamw",
    "fit_kernel",
    "make_lmc_objective",
    "make_objective",
    "negative_log_marginal_likelihood",
    "step_schedule",
]
