"""Logit-normal models: Gaussian latent values, abilities in (0, 1)."""

from gp_eval.models.logit.bayesame_logit import BayesAMELogit
from gp_eval.models.logit.logit_model import LogitModel
from gp_eval.models.logit.variational import VariationalLogitGP

__all__ = ["BayesAMELogit", "LogitModel", "VariationalLogitGP"]
