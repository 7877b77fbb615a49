"""DISCO's experiments: splits, factors, calibration and costs."""

from gp_eval.experiments.disco.calibration import (
    error_correlations,
    expected_calibration_error,
    mean_confidence,
)
from gp_eval.experiments.disco.costs import Costs
from gp_eval.experiments.disco.factors import Levels, factor_analysis
from gp_eval.experiments.disco.run import draws_of, run_trials
from gp_eval.experiments.disco.summary import by_fit, records, summarise_trials
from gp_eval.experiments.disco.trials import SplitName, Trial, trials

__all__ = [
    "Costs",
    "Levels",
    "SplitName",
    "Trial",
    "by_fit",
    "draws_of",
    "error_correlations",
    "expected_calibration_error",
    "factor_analysis",
    "mean_confidence",
    "records",
    "run_trials",
    "summarise_trials",
    "trials",
]
