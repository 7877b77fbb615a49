"""Effects of a target on the link's scale, by penalised quasi-likelihood."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gp_eval.kernels import PopulationStatistics

__all__ = ["fit_effects"]

_STEPS = 100
_TOLERANCE = 1e-9
_ROUNDING = 1e-12

_PSEUDO_SCORES = 2.0
"""Scores of one half that are added: a success and a failure, as in Laplace's rule."""


def fit_effects(
    statistics: PopulationStatistics,
    phi: Tensor,
    scores: Tensor,
    *,
    mean: Tensor,
    std: Tensor,
) -> Tensor:
    r"""Most probable effects given scores of some items, by Fisher scoring.

    Solves :math:`X^\top r \, (s - p) = (\theta - \theta_0) / \tau^2` with
    :math:`r = J / \operatorname{var}(s)`: for scores in [0, 1] a logistic regression
    with a normal prior, whose solution is unique.

    A success and a failure are added to scores in [0, 1], spread over the items:
    where a model is linearised, its variance is taken, and a target that was right so
    far has not the variance 0. The posterior mean makes up for it.

    Args:
        statistics: Of the references.
        phi: Rows of reference scores of the items, ``n x K``.
        scores: Scores of targets, ``... x n``. Where those of the references are in
            [0, 1], others count as the nearer end: no mean of the logit link is beyond,
            and they would draw the effects without limit.
        mean: Prior mean of the effects, shape ``F``.
        std: Prior standard deviations, shape ``F``.

    Returns:
        The effects of each target, ``... x F``.

    Raises:
        RuntimeError: If scoring does not converge.
    """
    features, weight = statistics.features(phi), statistics.score_weight(phi)
    if statistics.bounded and (n := scores.shape[-1]):
        total = n + _PSEUDO_SCORES
        scores = (n * scores.clamp(0.0, 1.0) + _PSEUDO_SCORES / 2) / total
        weight = weight * (total / n)
    precision = std.pow(-2)
    effects = mean.expand(*scores.shape[:-1], -1)

    def loss(at: Tensor) -> Tensor:
        predictor = at @ features.T
        terms = torch.nn.functional.softplus(predictor) - scores * predictor
        return terms @ weight + 0.5 * (at - mean).square() @ precision

    for _ in range(_STEPS):
        at = statistics.response(phi, effects @ features.T)
        slope = (weight * (scores - at)) @ features - precision * (effects - mean)
        curvature = (weight * statistics.sensitivity_at(at)).unsqueeze(-2)
        information = (curvature * features.T) @ features
        step = torch.linalg.solve(information + torch.diag(precision), slope)
        if not statistics.bounded:  # linear: one step is all there is
            return effects + step
        step = _shortened(loss, effects, step)
        effects = effects + step
        moved, size = step.abs().amax(-1), effects.abs().amax(-1)
        if bool((moved < _TOLERANCE * (1.0 + size)).all()):
            return effects
    raise RuntimeError(
        f"effects of the target did not converge in {_STEPS} steps on "
        f"{scores.shape[-1]} scores"
    )


def _shortened(loss: Callable[[Tensor], Tensor], start: Tensor, step: Tensor) -> Tensor:
    """Steps halved until the loss of none rises.

    Far from the optimum a full step can overshoot. The loss is convex: a shorter one
    lowers it, up to rounding.
    """
    before = loss(start)
    while True:
        worse = loss(start + step) - before > _ROUNDING * before.abs()
        if not bool(worse.any()):
            return step
        step = torch.where(worse.unsqueeze(-1), step / 2, step)
