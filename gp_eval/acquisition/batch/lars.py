r"""A first batch from the :math:`\ell_1` relaxation of Eq. (13)."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from gp_eval.acquisition.batch.objective import BatchObjective

__all__ = ["lars_batch"]

_SCREEN = 256
_SLACK = 1e-9


def lars_batch(objective: BatchObjective, q: int, *, screen: int = _SCREEN) -> Tensor:
    r"""The first ``q`` candidates on the path of least angle regression.

    The relaxation of Appendix B.1, :math:`\min_w \frac12 w^\top \Sigma w - w^\top v +
    \lambda \lVert w \rVert_1` with ``v`` proportional to ``c``, needs nothing but
    :math:`\Sigma` and ``v``: the Gram form of scikit-learn. The path is computed on the
    ``screen`` candidates of largest ``v`` and checked against all of them: where the
    optimality condition fails for a candidate left out, it joins and the path is
    computed again (the strong rules of Tibshirani et al., 2012). What comes out is the
    path over all candidates, at a cost linear in their number.

    Args:
        objective: The candidates, ``M`` of them.
        q: Size of the batch, at most ``M``.
        screen: Number of candidates to begin with.

    Returns:
        ``q`` candidates in the order in which they join; where scikit-learn drops
        near copies and ends early, those of largest ``v`` fill the rest.
    """
    v = objective.covariance / objective.covariance.abs().max().clamp_min(1e-300)
    by_size = torch.argsort(v.abs(), descending=True, stable=True)
    kept = by_size[: max(screen, q)]
    while True:
        active, weights, levels = _path(objective.block(kept), v[kept], q)
        joined = kept[active]
        # Both sides of the condition are linear between knots: knots suffice.
        gradient = v - weights @ objective.rows(joined)
        over = gradient.abs() > levels.unsqueeze(-1) * (1.0 + _SLACK) + _SLACK
        over[:, kept] = False
        if not bool(over.any()):
            break
        kept = torch.cat([kept, over.any(0).nonzero().squeeze(-1)])
    rest = by_size[~torch.isin(by_size, joined)]
    return torch.cat([joined, rest])[:q]


def _path(gram: Tensor, v: Tensor, q: int) -> tuple[Tensor, Tensor, Tensor]:
    r"""Active candidates, their weights at the knots, and :math:`\lambda` there."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lars_path_gram

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        levels, active, weights = lars_path_gram(
            v.numpy().copy(),
            gram.numpy().copy(),
            n_samples=1,
            max_iter=q,
            method="lar",
            return_path=True,
        )
    chosen = np.asarray(active, dtype=np.int64)[:q]
    # The q-th joins at knot q - 1; what comes later is of no interest.
    return (
        torch.from_numpy(chosen),
        torch.from_numpy(np.ascontiguousarray(weights[chosen, :q].T)),
        torch.from_numpy(np.ascontiguousarray(levels[:q])),
    )
