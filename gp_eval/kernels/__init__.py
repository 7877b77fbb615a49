"""Kernels over reference score vectors and over features of signatures."""

from gp_eval.kernels.dot_product import DotProductKernel
from gp_eval.kernels.reference import ReferenceScoreKernel

__all__ = ["DotProductKernel", "ReferenceScoreKernel"]
