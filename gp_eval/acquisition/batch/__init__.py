"""Optimal batches of items: Appendix B.1 of the BayesAME paper."""

from gp_eval.acquisition.batch.dpp import sample_k_dpp
from gp_eval.acquisition.batch.lars import lars_batch
from gp_eval.acquisition.batch.objective import BatchObjective
from gp_eval.acquisition.batch.optimize import BatchMethod, BatchResult, optimize_batch
from gp_eval.acquisition.batch.pairs import best_pair, pair_values
from gp_eval.acquisition.batch.search import (
    SearchSettings,
    improve_by_swaps,
    search_batches,
)
from gp_eval.acquisition.batch.selection import BatchSelection
from gp_eval.acquisition.batch.strata import stratified_batches
from gp_eval.acquisition.batch.swap import replacement_values, swapped_inverse

__all__ = [
    "BatchMethod",
    "BatchObjective",
    "BatchResult",
    "BatchSelection",
    "SearchSettings",
    "best_pair",
    "improve_by_swaps",
    "lars_batch",
    "optimize_batch",
    "pair_values",
    "replacement_values",
    "sample_k_dpp",
    "search_batches",
    "stratified_batches",
    "swapped_inverse",
]
