"""Hyperparameter optimisation."""

from gp_eval.optim.lbfgsb import Fit, fit_kernel
from gp_eval.optim.objective import make_objective, negative_log_marginal_likelihood

__all__ = ["Fit", "fit_kernel", "make_objective", "negative_log_marginal_likelihood"]
