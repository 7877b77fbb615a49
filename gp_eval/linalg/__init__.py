"""Exact Gaussian conditioning on the bucket table, in double precision."""

from gp_eval.linalg.cholesky import cholesky
from gp_eval.linalg.kernel_table import (
    DenseKernelTable,
    KernelTable,
    ReferenceKernelTable,
    make_kernel_table,
)
from gp_eval.linalg.leave_one_out import leave_one_out, leave_one_out_scores
from gp_eval.linalg.lmc_table import LMCTable
from gp_eval.linalg.multi_target import MultiTargetPosterior
from gp_eval.linalg.observations import Observations
from gp_eval.linalg.row_append import RowAppendPosterior

__all__ = [
    "DenseKernelTable",
    "KernelTable",
    "LMCTable",
    "MultiTargetPosterior",
    "Observations",
    "ReferenceKernelTable",
    "RowAppendPosterior",
    "cholesky",
    "leave_one_out",
    "leave_one_out_scores",
    "make_kernel_table",
]
