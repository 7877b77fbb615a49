"""Kernels over reference score vectors."""

from gp_eval.kernels.reference import ReferenceScoreKernel

__all__ = ["ReferenceScoreKernel"]
