"""AIPW and its Bayesian form on many targets at once."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.experiments.batched.bayesian_ridge import fit_bayesian_ridge
from gp_eval.experiments.curves import Curves
from gp_eval.models.baselines.aipw import AIPW, BayesianAIPW
from gp_eval.models.baselines.sampling import (
    require_uniform,
    sampling_variance,
    score_variance,
)

__all__ = ["simulate_aipw", "simulate_bayesian_aipw"]


def simulate_aipw(
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
    ridge_alpha: float = 10.0,
) -> Curves:
    r"""Curves of :class:`~gp_eval.models.baselines.AIPW`.

    The inverse :math:`P = (X^\top X + \alpha I)^{-1}` of the centred reference scores
    is shared by all targets and takes a rank-1 update for each item. With the means
    before it, a new item adds :math:`\frac{n - 1}{n} \delta \delta^\top` to
    :math:`X^\top X`; the products with the scores follow in the same way.

    Args:
        references: The references of all ``R`` runs.
        scores: Scores of the targets on all items, ``R x N``.
        order: Order of evaluation, a permutation of the items.
        n_max: Number of items to evaluate, at most ``N``.
        ridge_alpha: As in the model.
    """
    require_uniform(AIPW.name, references)
    order = order.to(scores.device)
    phi, targets = references.scores.to(scores)[order], scores.T[order]
    n_items, size = phi.shape
    total = phi.mean(0)
    inverse = torch.eye(size, dtype=phi.dtype, device=phi.device) / ridge_alpha
    centre, target_mean = torch.zeros_like(phi[0]), torch.zeros_like(targets[0])
    products = torch.zeros_like(centre).unsqueeze(-1) * target_mean
    means, residuals = [], []
    for n in range(1, n_max + 1):
        delta, surprise = phi[n - 1] - centre, targets[n - 1] - target_mean
        share = (n - 1) / n
        gain = inverse @ delta
        inverse -= torch.outer(gain, gain * (share / (1.0 + share * delta.dot(gain))))
        products += torch.outer(share * delta, surprise)
        centre, target_mean = centre + delta / n, target_mean + surprise / n
        slope = inverse @ products
        # From the mean of the evaluated items to that of all of them, which is
        # (N - n) / N of the way to that of the others.
        means.append(target_mean + (total - centre) @ slope)
        # Not from sums of squares: with many references next to nothing is left.
        residuals.append(
            (targets[:n] - phi[:n] @ slope).var(0, correction=min(n - 1, 1))
        )
    mean, variance = torch.stack(means, -1), torch.stack(residuals, -1)
    variance[:, 0] = score_variance(references).to(scores)
    if n_max == n_items:
        mean[:, -1] = scores.mean(-1)
    sizes = torch.arange(1, n_max + 1).to(scores)
    return Curves(mean, sampling_variance(variance, sizes, n_items))


def simulate_bayesian_aipw(
    references: References, scores: Tensor, order: Tensor, *, n_max: int
) -> Curves:
    """Curves of :class:`~gp_eval.models.baselines.BayesianAIPW`.

    Each step is one regression for all targets, see
    :func:`~gp_eval.experiments.batched.bayesian_ridge.fit_bayesian_ridge`.

    Args:
        references: The references of all ``R`` runs.
        scores: Scores of the targets on all items, ``R x N``.
        order: Order of evaluation, a permutation of the items.
        n_max: Number of items to evaluate, at most ``N``.
    """
    require_uniform(BayesianAIPW.name, references)
    order = order.to(scores.device)
    phi, targets = references.scores.to(scores)[order], scores.T[order]
    n_items = phi.shape[0]
    mean = scores.new_empty(scores.shape[0], n_max)
    variance = torch.zeros_like(mean)
    for n in range(1, min(n_max, n_items - 1) + 1):
        centre, target_mean = phi[:n].mean(0), targets[:n].mean(0)
        fit = fit_bayesian_ridge(phi[:n] - centre, targets[:n] - target_mean)
        difference, share = phi[n:].mean(0) - centre, (n_items - n) / n_items
        mean[:, n - 1] = target_mean + share * (difference @ fit.coefficients)
        spread = fit.quadratic_form(difference.unsqueeze(-1))[0]
        noise = (1.0 / n + 1.0 / (n_items - n)) / fit.alpha
        variance[:, n - 1] = share**2 * (spread + noise)
    if n_max == n_items:
        mean[:, -1] = scores.mean(-1)
    return Curves(mean, variance)
