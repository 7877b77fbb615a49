"""Effects of a target on the link's scale, by penalised quasi-likelihood."""

from __future__ import annotations

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
        scores: Scores of the target, shape ``n``. Where those of the references are in
            [0, 1], others count as the nearer end: no mean of the logit link is beyond,
            and they would draw the effects without limit.
        mean: Prior mean of the effects, shape ``F``.
        std: Prior standard deviations, shape ``F``.

    Returns:
        The effects, shape ``F``.

    Raises:
        RuntimeError: If scoring does not converge.
    """
    if statistics.bounded:
        scores = scores.clamp(0.0, 1.0)
    features, weight = statistics.features(phi), statistics.score_weight(phi)
    if statistics.bounded and (n := scores.shape[0]):
        total = n + _PSEUDO_SCORES
        scores = (n * scores + _PSEUDO_SCORES / 2) / total
        weight = weight * (total / n)
    penalty = std.pow(-2)
    effects = mean.clone()

    def loss(at: Tensor) -> Tensor:
        predictor = features @ at
        terms = weight * (torch.nn.functional.softplus(predictor) - scores * predictor)
        return terms.sum() + 0.5 * (penalty * (at - mean).square()).sum()

    for _ in range(_STEPS):
        at = statistics.response(phi, features @ effects)
        score = features.T @ (weight * (scores - at)) - penalty * (effects - mean)
        curvature = weight * statistics.sensitivity_at(at)
        information = features.T @ (curvature.unsqueeze(-1) * features)
        step = torch.linalg.solve(information + torch.diag(penalty), score)
        if not statistics.bounded:  # linear: one step is all there is
            return effects + step
        effects, before = effects + step, loss(effects)
        # Far from the optimum a full step can overshoot. The loss is convex: a shorter
        # one lowers it, up to rounding.
        while float(loss(effects) - before) > _ROUNDING * abs(float(before)):
            step = step / 2
            effects = effects - step
        if float(step.abs().max()) < _TOLERANCE * (1.0 + float(effects.abs().max())):
            return effects
    raise RuntimeError(
        f"effects of the target did not converge in {_STEPS} steps on {len(scores)} "
        "scores"
    )
