"""Baselines of Section 5 of the BayesAME paper, each a model of the harness."""

from gp_eval.models.baselines.aipw import AIPW, BayesianAIPW
from gp_eval.models.baselines.anchor_points import SequentialAnchorPoints
from gp_eval.models.baselines.random_mean import RandomMean
from gp_eval.models.baselines.regression import (
    BayesianRandomSamplingLearn,
    RandomSamplingLearn,
)

__all__ = [
    "AIPW",
    "BayesianAIPW",
    "BayesianRandomSamplingLearn",
    "RandomMean",
    "RandomSamplingLearn",
    "SequentialAnchorPoints",
]
