"""Intervals that hold: any model, calibrated on references that are run as targets."""

from gp_eval.calibration.inflation import Inflation, fit_inflation
from gp_eval.calibration.make import calibrated, calibrated_targets
from gp_eval.calibration.model import Calibrated
from gp_eval.calibration.own_variance import own_variances
from gp_eval.calibration.pseudo_targets import folds, squared_errors
from gp_eval.calibration.targets import CalibratedTargets

__all__ = [
    "Calibrated",
    "CalibratedTargets",
    "Inflation",
    "calibrated",
    "calibrated_targets",
    "fit_inflation",
    "folds",
    "own_variances",
    "squared_errors",
]
