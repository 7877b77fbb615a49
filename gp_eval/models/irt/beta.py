r"""The Beta family of continuous scores."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from gp_eval.models.irt.family import JointDensity

__all__ = ["BetaResponse"]


class BetaResponse:
    r"""Beta item response: Noel & Dauvier (2007) as extended by Chen et al. (2019).

    :math:`s_i \sim \operatorname{Beta}(\alpha_i, \beta_i)` with :math:`\alpha_i =
    (\theta / \delta_i)^{a_i}`, :math:`\beta_i = ((1 - \theta) / (1 - \delta_i))^{a_i}`;
    :math:`\theta, \delta_i \sim U(0, 1)`, :math:`a_i \sim N(1, 1)`. Abilities and
    difficulties are held as logits ``t`` and ``d``, and densities are of these, with
    the Jacobian. The mean score is :math:`\sigma(a (t - d))`. There is no free
    precision: intervals are much too narrow where the family does not fit.

    Scores 0 and 1 have no density here, so scores are clipped for the likelihood,
    which is this package's choice and matters.

    Args:
        clip: Scores are clipped to ``[clip, 1 - clip]``.
    """

    name = "irt-beta"

    def __init__(self, *, clip: float = 0.01) -> None:
        if not 0.0 < clip < 0.5:
            raise ValueError(f"{self.name}: clip: expected 0 < clip < 0.5, got {clip}")
        self.clip = clip

    def statistics(self, scores: Tensor) -> Tensor:
        """Logarithms of the clipped score and of one minus it, ``2 x ...``.

        Raises:
            ValueError: For a score outside [0, 1].
        """
        wrong = scores[~((scores >= 0.0) & (scores <= 1.0))]
        if wrong.numel():
            raise ValueError(
                f"{self.name}: expected scores in [0, 1], got {float(wrong[0])}"
            )
        clipped = scores.clamp(self.clip, 1.0 - self.clip)
        return torch.stack([clipped.log(), torch.log1p(-clipped)])

    def _log_shapes(self, t: Tensor, a: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
        """Logarithms of ``alpha`` and ``beta``."""
        return (
            a * (logsigmoid(t) - logsigmoid(d)),
            a * (logsigmoid(-t) - logsigmoid(-d)),
        )

    def terms(
        self, discrimination: Tensor, difficulty: Tensor, ability: Tensor
    ) -> tuple[Tensor, Tensor]:
        """``alpha - 1`` and ``beta - 1``, ``2 x ... x G``, and log Beta ``... x G``."""
        log_alpha, log_beta = self._log_shapes(
            ability, discrimination.unsqueeze(-1), difficulty.unsqueeze(-1)
        )
        alpha, beta = log_alpha.exp(), log_beta.exp()
        partition = alpha.lgamma() + beta.lgamma() - (alpha + beta).lgamma()
        return torch.stack([alpha, beta]) - 1.0, partition

    def moments(
        self, discrimination: Tensor, difficulty: Tensor, ability: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Mean and variance of the score, both ``... x G``."""
        a, d = discrimination.unsqueeze(-1), difficulty.unsqueeze(-1)
        log_alpha, log_beta = self._log_shapes(ability, a, d)
        mean = torch.sigmoid(self.logit(ability, a, d))
        precision = log_alpha.exp() + log_beta.exp()
        return mean, mean * (1.0 - mean) / (precision + 1.0)

    def logit(
        self, ability: Tensor, discrimination: Tensor, difficulty: Tensor
    ) -> Tensor:
        """``a (t - d)``, of the arguments' broadcast shape."""
        return discrimination * (ability - difficulty)

    def ability_log_prior(self, ability: Tensor) -> Tensor:
        """Standard logistic: the logit of a uniform variable."""
        return logsigmoid(ability) + logsigmoid(-ability)

    def item_log_prior(self, discrimination: Tensor, difficulty: Tensor) -> Tensor:
        """Normal in ``a`` and standard logistic in ``d``, up to a constant."""
        uniform = logsigmoid(difficulty) + logsigmoid(-difficulty)
        return uniform - 0.5 * (discrimination - 1.0).square()

    def joint(
        self,
        statistics: Tensor,
        ability: Tensor,
        discrimination: Tensor,
        difficulty: Tensor,
    ) -> JointDensity:
        """Joint log density of ``2 x N x K`` statistics and all parameters."""
        a, d, t = discrimination.unsqueeze(-1), difficulty.unsqueeze(-1), ability
        log_alpha, log_beta = self._log_shapes(t, a, d)
        alpha, beta = log_alpha.exp(), log_beta.exp()
        total = alpha + beta
        value = (
            ((alpha - 1.0) * statistics[0] + (beta - 1.0) * statistics[1]).sum()
            + (total.lgamma() - alpha.lgamma() - beta.lgamma()).sum()
            + self.ability_log_prior(ability).sum()
            + self.item_log_prior(discrimination, difficulty).sum()
        )
        # Derivatives with respect to log alpha and log beta, N x K.
        shared = total.digamma()
        by_alpha = alpha * (statistics[0] - alpha.digamma() + shared)
        by_beta = beta * (statistics[1] - beta.digamma() + shared)
        up, down = torch.sigmoid(-t), torch.sigmoid(t)
        ease, hardness = torch.sigmoid(difficulty), torch.sigmoid(-difficulty)
        by_a = by_alpha * (logsigmoid(t) - logsigmoid(d))
        by_a = by_a + by_beta * (logsigmoid(-t) - logsigmoid(-d))
        by_d = ease * by_beta.sum(-1) - hardness * by_alpha.sum(-1)
        return JointDensity(
            value,
            up * (discrimination @ by_alpha)
            - down * (discrimination @ by_beta)
            + (up - down),
            by_a.sum(-1) - (discrimination - 1.0),
            discrimination * by_d + (hardness - ease),
        )
