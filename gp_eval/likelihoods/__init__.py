"""Observation models of the scores."""

from gp_eval.likelihoods.bucket import BucketGaussianLikelihood, BucketNoise

__all__ = ["BucketGaussianLikelihood", "BucketNoise"]
