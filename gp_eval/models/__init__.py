"""Models: the GP of the paper, and everything that estimates a benchmark score."""

from gp_eval.models.bayesame import BayesAME
from gp_eval.models.bucket_gp import BucketGP
from gp_eval.models.protocol import Performance, PerformanceModel, SupportsRefit
from gp_eval.models.registry import make_model, model_names, register_model
from gp_eval.models.sequential import SequentialBucketModel

__all__ = [
    "BayesAME",
    "BucketGP",
    "Performance",
    "PerformanceModel",
    "SequentialBucketModel",
    "SupportsRefit",
    "make_model",
    "model_names",
    "register_model",
]
