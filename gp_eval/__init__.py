"""gp_eval: a model's full-benchmark score from a few adaptively chosen items.

Names are imported when they are first used, so that ``gp-eval --help`` and the readers
of log files do not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gp_eval.acquisition import (
        RandomSelection,
        inverse_cost,
        qAverageInformationGain,
        qGainPerCost,
        qPerformanceInformationGain,
    )
    from gp_eval.comparison import compare
    from gp_eval.costs import ItemCosts
    from gp_eval.data import Buckets, Groups, References, weights_from_metadata
    from gp_eval.decision import Decision
    from gp_eval.diagnosis import Diagnosis, check_references
    from gp_eval.disco import DiscoOptions, DiscoPlan
    from gp_eval.evaluation import evaluate
    from gp_eval.groups import group_estimates
    from gp_eval.kernels import (
        LMCKernel,
        PopulationKernel,
        PopulationStatistics,
        RankOneIndexKernel,
        ReferenceMaternKernel,
        ReferenceScoreKernel,
    )
    from gp_eval.likelihoods import BucketGaussianLikelihood
    from gp_eval.loop import EvaluationLoop, Result
    from gp_eval.means import ReferenceMean
    from gp_eval.models import (
        BayesAME,
        BayesAMELogit,
        BucketGP,
        MultiTargetBayesAME,
        MultiTargetGP,
        Performance,
        PerformanceModel,
        Population,
        SequentialBucketModel,
        SequentialMultiTargetModel,
        make_model,
        register_model,
    )
    from gp_eval.multi_target_loop import MultiTargetLoop
    from gp_eval.report.build import build_report
    from gp_eval.report.write import write_report
    from gp_eval.session import MultiTargetSession, Session, open_session
    from gp_eval.settings import exact_inference
    from gp_eval.stopping import StoppingRule

_HOMES = {
    "BayesAME": "models",
    "BayesAMELogit": "models",
    "BucketGP": "models",
    "BucketGaussianLikelihood": "likelihoods",
    "Buckets": "data",
    "Decision": "decision",
    "Diagnosis": "diagnosis",
    "DiscoOptions": "disco",
    "DiscoPlan": "disco",
    "EvaluationLoop": "loop",
    "Groups": "data",
    "ItemCosts": "costs",
    "LMCKernel": "kernels",
    "MultiTargetBayesAME": "models",
    "MultiTargetGP": "models",
    "MultiTargetLoop": "multi_target_loop",
    "MultiTargetSession": "session",
    "Performance": "models",
    "Population": "models",
    "PopulationKernel": "kernels",
    "PopulationStatistics": "kernels",
    "PerformanceModel": "models",
    "RandomSelection": "acquisition",
    "RankOneIndexKernel": "kernels",
    "ReferenceMaternKernel": "kernels",
    "ReferenceMean": "means",
    "ReferenceScoreKernel": "kernels",
    "References": "data",
    "Result": "loop",
    "SequentialBucketModel": "models",
    "SequentialMultiTargetModel": "models",
    "Session": "session",
    "StoppingRule": "stopping",
    "build_report": "report.build",
    "check_references": "diagnosis",
    "compare": "comparison",
    "evaluate": "evaluation",
    "exact_inference": "settings",
    "group_estimates": "groups",
    "inverse_cost": "acquisition",
    "make_model": "models",
    "open_session": "session",
    "qAverageInformationGain": "acquisition",
    "qGainPerCost": "acquisition",
    "qPerformanceInformationGain": "acquisition",
    "register_model": "models",
    "weights_from_metadata": "data",
    "write_report": "report.write",
}

__all__ = [
    "BayesAME",
    "BayesAMELogit",
    "BucketGP",
    "BucketGaussianLikelihood",
    "Buckets",
    "Decision",
    "Diagnosis",
    "DiscoOptions",
    "DiscoPlan",
    "EvaluationLoop",
    "Groups",
    "ItemCosts",
    "LMCKernel",
    "MultiTargetBayesAME",
    "MultiTargetGP",
    "MultiTargetLoop",
    "MultiTargetSession",
    "Performance",
    "PerformanceModel",
    "Population",
    "PopulationKernel",
    "PopulationStatistics",
    "RandomSelection",
    "RankOneIndexKernel",
    "ReferenceMaternKernel",
    "ReferenceMean",
    "ReferenceScoreKernel",
    "References",
    "Result",
    "SequentialBucketModel",
    "SequentialMultiTargetModel",
    "Session",
    "StoppingRule",
    "build_report",
    "check_references",
    "compare",
    "evaluate",
    "exact_inference",
    "group_estimates",
    "inverse_cost",
    "make_model",
    "open_session",
    "qAverageInformationGain",
    "qGainPerCost",
    "qPerformanceInformationGain",
    "register_model",
    "weights_from_metadata",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gp_eval' has no attribute {name!r}")
    return getattr(import_module(f"gp_eval.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
