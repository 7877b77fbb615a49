"""RS-Learn and its Bayesian form on many targets: one fit a step serves all."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.experiments.batched.bayesian_ridge import fit_bayesian_ridge
from gp_eval.experiments.curves import Curves
from gp_eval.models.baselines.regression import (
    BayesianRandomSamplingLearn,
    RandomSamplingLearn,
    candidate_penalties,
    require_several,
)

__all__ = ["simulate_bayesian_random_sampling_learn", "simulate_random_sampling_learn"]


def simulate_random_sampling_learn(
    references: References, scores: Tensor, order: Tensor, *, n_max: int
) -> Curves:
    r"""Curves of :class:`~gp_eval.models.baselines.RandomSamplingLearn`.

    ``RidgeCV`` in closed form. For each penalty :math:`\alpha` the inverse of
    :math:`G = X X^\top + \alpha I` over the ``K`` references is kept by a rank-1
    update for each item. The leave-one-out errors are :math:`c_k / d_k` with
    :math:`c = G^{-1} y` and :math:`d = \operatorname{diag} G^{-1} - \frac{1}{\alpha
    K}`, where the second term is for the intercept; the smaller penalty wins a tie.

    Args:
        references: The references of all ``R`` runs, at least two models.
        scores: Scores of the targets on all items, ``R x N``.
        order: Order of evaluation, a permutation of the items.
        n_max: Number of items to evaluate, at most ``N``.
    """
    require_several(RandomSamplingLearn.name, references)
    order = order[:n_max].to(scores.device)
    phi = references.scores.to(scores)[order]
    centre = phi.mean(-1, keepdim=True)
    phi, targets = phi - centre, scores.T[order] - centre
    outcome = references.performance.to(scores)
    average = outcome.mean()
    size = phi.shape[-1]
    penalties = candidate_penalties(size)
    alphas = torch.tensor(penalties, dtype=phi.dtype, device=phi.device)
    eye = torch.eye(size, dtype=phi.dtype, device=phi.device)
    inverses = eye / alphas.view(-1, 1, 1)
    means, variances = [], []
    for n in range(1, n_max + 1):
        gain = inverses @ phi[n - 1]
        scale = 1.0 + gain @ phi[n - 1]
        inverses -= gain.unsqueeze(-1) * (gain / scale.unsqueeze(-1)).unsqueeze(-2)
        dual = inverses @ (outcome - average)
        diagonal = inverses.diagonal(dim1=-2, dim2=-1)
        errors = dual / (diagonal - 1.0 / (alphas * size).unsqueeze(-1))
        loss = errors.square().mean(-1)
        best = loss.argmin()
        means.append(average + (phi[:n] @ dual[best]) @ targets[:n])
        variances.append(loss[best].expand(scores.shape[0]))
    return Curves(torch.stack(means, -1), torch.stack(variances, -1))


def simulate_bayesian_random_sampling_learn(
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
    fit_intercept: bool = True,
) -> Curves:
    """Curves of :class:`~gp_eval.models.baselines.BayesianRandomSamplingLearn`.

    Args:
        references: The references of all ``R`` runs, at least two models.
        scores: Scores of the targets on all items, ``R x N``.
        order: Order of evaluation, a permutation of the items.
        n_max: Number of items to evaluate, at most ``N``.
        fit_intercept: As in the model.
    """
    require_several(BayesianRandomSamplingLearn.name, references)
    order = order[:n_max].to(scores.device)
    phi = references.scores.to(scores)[order]
    outcome = references.performance.to(scores).unsqueeze(-1)
    centre, average = phi.mean(-1, keepdim=True), outcome.mean()
    if not fit_intercept:
        centre, average = torch.zeros_like(centre), torch.zeros_like(average)
    phi, targets = phi - centre, scores.T[order] - centre
    means, variances = [], []
    for n in range(1, n_max + 1):
        fit = fit_bayesian_ridge(phi[:n].T, outcome - average)
        means.append(average + fit.coefficients[:, 0] @ targets[:n])
        spread = fit.quadratic_form(targets[:n])[:, 0]
        variances.append(spread + 1.0 / fit.alpha)
    return Curves(torch.stack(means, -1), torch.stack(variances, -1))
