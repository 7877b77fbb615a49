"""Kernels over reference score vectors, for one target and for several.

That over the features of DISCO's signatures stands beside them.
"""

from gp_eval.kernels._reference_kernel import ReferenceKernel
from gp_eval.kernels.dot_product import DotProductKernel
from gp_eval.kernels.lmc import (
    LMCKernel,
    RankOneIndexKernel,
    default_latents,
    hadamard_lmc,
)
from gp_eval.kernels.matern import ReferenceMaternKernel
from gp_eval.kernels.population import PopulationKernel
from gp_eval.kernels.population_statistics import PopulationStatistics
from gp_eval.kernels.reference import ReferenceScoreKernel

__all__ = [
    "DotProductKernel",
    "LMCKernel",
    "PopulationKernel",
    "PopulationStatistics",
    "RankOneIndexKernel",
    "ReferenceKernel",
    "ReferenceMaternKernel",
    "ReferenceScoreKernel",
    "default_latents",
    "hadamard_lmc",
]
