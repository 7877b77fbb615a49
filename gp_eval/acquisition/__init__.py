"""Selection of items, written as BoTorch acquisition functions."""

from gp_eval.acquisition.average_information_gain import qAverageInformationGain
from gp_eval.acquisition.batch import BatchResult, BatchSelection, optimize_batch
from gp_eval.acquisition.cost_aware import (
    ItemCostModel,
    inverse_cost,
    measures_information,
    qGainPerCost,
)
from gp_eval.acquisition.disagreement import DisagreementSelection
from gp_eval.acquisition.information_gain import qPerformanceInformationGain
from gp_eval.acquisition.random import RandomSelection
from gp_eval.acquisition.select import select_items
from gp_eval.acquisition.space_covering import SpaceCovering
from gp_eval.acquisition.variance_reduction import qVarianceReduction

__all__ = [
    "BatchResult",
    "BatchSelection",
    "DisagreementSelection",
    "ItemCostModel",
    "RandomSelection",
    "SpaceCovering",
    "inverse_cost",
    "measures_information",
    "optimize_batch",
    "qAverageInformationGain",
    "qGainPerCost",
    "qPerformanceInformationGain",
    "qVarianceReduction",
    "select_items",
]
