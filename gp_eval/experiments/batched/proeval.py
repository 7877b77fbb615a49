"""ProEval on many targets at once: one selection and one factor serve all of them."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.acquisition import select_items
from gp_eval.acquisition.variance_reduction import qVarianceReduction
from gp_eval.data import References
from gp_eval.experiments.curves import Curves
from gp_eval.linalg import cholesky
from gp_eval.models.baselines.latent_scores import LatentScoreModel
from gp_eval.models.baselines.proeval import ProEvalVersion, latent_score_models

__all__ = ["proeval_selection", "simulate_proeval"]


def proeval_selection(
    references: References, selection: LatentScoreModel, order: Tensor, *, n_max: int
) -> list[int]:
    """The first ``n_max`` items that ProEval selects, whatever the target scores.

    Args:
        references: The references of the run.
        selection: The selecting belief before the first item; it is conditioned.
        order: A permutation of the items: among items that are equal to all
            references the earlier one is selected. ``torch.arange(N)`` is the
            published rule.
        n_max: Number of items.
    """
    acquisition = qVarianceReduction(selection)
    same_as = torch.unique(references.scores, dim=0, return_inverse=True)[1]
    rank = torch.argsort(order)
    available = torch.ones(len(references.items), dtype=torch.bool)
    chosen: list[int] = []
    for _ in range(n_max):
        (item,) = select_items(acquisition, available, q=1, same_as=same_as, rank=rank)
        available[item] = False
        # Variances do not depend on scores: the mean stands in for one.
        selection.append(item, float(selection.engine.mean[item]))
        chosen.append(item)
    return chosen


def simulate_proeval(
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
    version: ProEvalVersion = "0.1.1",
    noise: float = 0.3,
) -> Curves:
    r"""Curves of :class:`~gp_eval.models.baselines.proeval.ProEval`.

    With :math:`L L^\top = S_{CC} + \sigma^2 I` of the selected items in their order,
    :math:`b = L^{-1} S_{C,:} w` and :math:`z = L^{-1} (s_C - \bar\phi_C)`, the estimate
    after ``n`` items is :math:`w^\top \bar\phi + \sum_{m \le n} b_m z_m` and the
    variance :math:`w^\top S w - \sum_{m \le n} b_m^2`: prefixes of one factor.

    Args:
        references: The references of all ``R`` runs.
        scores: Scores of the targets on all items, ``R x N``.
        order: A permutation of the items; it only orders items that are equal to all
            references.
        n_max: Number of items to evaluate, at most ``N``.
        version: As in the model.
        noise: As in the model.
    """
    model, selection = latent_score_models(references, version=version, noise=noise)
    table, prior_mean = model.engine.table, model.engine.prior_mean
    prior = table.matvec(model.weights)
    chosen = torch.tensor(
        proeval_selection(references, selection, order.cpu(), n_max=n_max)
    )
    gram = table.block(chosen, chosen)
    gram.diagonal().add_(noise)
    factor = cholesky(gram, name="covariance of the selected items").to(scores.device)
    residual = scores[:, chosen.to(scores.device)].T - prior_mean[chosen].unsqueeze(
        -1
    ).to(scores)
    right = torch.cat([prior[chosen].unsqueeze(-1).to(scores), residual], dim=-1)
    white = torch.linalg.solve_triangular(factor, right, upper=False)
    share, innovation = white[:, :1], white[:, 1:]
    start = model.weights.dot(prior_mean).to(scores)
    variance = model.weights.dot(prior).to(scores) - share.square().cumsum(0)
    return Curves(
        mean=(start + (share * innovation).cumsum(0)).T,
        variance=variance.clamp_min(0.0).T.repeat(scores.shape[0], 1),
    )
