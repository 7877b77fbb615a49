"""Models: the GP of the paper, and everything that estimates a benchmark score."""

from gp_eval.models.bayesame import BayesAME
from gp_eval.models.bucket_gp import BucketGP
from gp_eval.models.logit import BayesAMELogit, LogitModel
from gp_eval.models.multi_target import SequentialMultiTargetModel
from gp_eval.models.multi_target_bayesame import MultiTargetBayesAME
from gp_eval.models.multi_target_gp import MultiTargetGP, multi_target_inputs
from gp_eval.models.population import Population, SequentialPopulationModel
from gp_eval.models.protocol import (
    LeaveOneOut,
    MultiTargetModel,
    Performance,
    PerformanceModel,
    SupportsItemBelief,
    SupportsRefit,
)
from gp_eval.models.registry import make_model, model_names, register_model
from gp_eval.models.sequential import SequentialBucketModel

__all__ = [
    "BayesAME",
    "BayesAMELogit",
    "BucketGP",
    "LeaveOneOut",
    "LogitModel",
    "MultiTargetBayesAME",
    "MultiTargetGP",
    "MultiTargetModel",
    "Performance",
    "PerformanceModel",
    "Population",
    "SequentialBucketModel",
    "SequentialMultiTargetModel",
    "SequentialPopulationModel",
    "SupportsItemBelief",
    "SupportsRefit",
    "make_model",
    "model_names",
    "multi_target_inputs",
    "register_model",
]
