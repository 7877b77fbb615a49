"""Selection of items, written as BoTorch acquisition functions."""

from gp_eval.acquisition.average_information_gain import qAverageInformationGain
from gp_eval.acquisition.batch import BatchResult, BatchSelection, optimize_batch
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
    "RandomSelection",
    "SpaceCovering",
    "optimize_batch",
    "qAverageInformationGain",
    "qPerformanceInformationGain",
    "qVarianceReduction",
    "select_items",
]
