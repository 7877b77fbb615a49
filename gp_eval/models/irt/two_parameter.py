"""The two-parameter logistic family of binary scores."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from gp_eval.models.irt.family import JointDensity

__all__ = ["TwoParameterLogistic"]


class TwoParameterLogistic:
    r"""2-PL: :math:`\operatorname{logit} P(s_i = 1) = a_i \theta - b_i`.

    The form of Polo et al. (2024), tinyBenchmarks, with a scalar ability. Priors:
    :math:`\theta \sim N(0, 1)`, :math:`a_i \sim N(1, 1)`, :math:`b_i \sim N(0, 4)`;
    an item that better models fail has ``a < 0``.
    """

    name = "irt-2pl"

    def statistics(self, scores: Tensor) -> Tensor:
        """The scores themselves, ``1 x ...``.

        Raises:
            ValueError: For a score other than 0 and 1.
        """
        wrong = scores[(scores != 0.0) & (scores != 1.0)]
        if wrong.numel():
            raise ValueError(
                f"{self.name}: expected scores 0 or 1, got {float(wrong[0])}; use "
                "irt-beta for scores in [0, 1]"
            )
        return scores.unsqueeze(0)

    def terms(
        self, discrimination: Tensor, difficulty: Tensor, ability: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits ``1 x ... x G`` and their log-partition ``... x G``."""
        logit = self.logit(
            ability, discrimination.unsqueeze(-1), difficulty.unsqueeze(-1)
        )
        return logit.unsqueeze(0), softplus(logit)

    def moments(
        self, discrimination: Tensor, difficulty: Tensor, ability: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Probability of 1 and its Bernoulli variance, both ``... x G``."""
        p = torch.sigmoid(
            self.logit(ability, discrimination.unsqueeze(-1), difficulty.unsqueeze(-1))
        )
        return p, p * (1.0 - p)

    def logit(
        self, ability: Tensor, discrimination: Tensor, difficulty: Tensor
    ) -> Tensor:
        """``a theta - b``, of the arguments' broadcast shape."""
        return discrimination * ability - difficulty

    def ability_log_prior(self, ability: Tensor) -> Tensor:
        """Standard normal, up to a constant."""
        return -0.5 * ability.square()

    def item_log_prior(self, discrimination: Tensor, difficulty: Tensor) -> Tensor:
        """Normal in both parameters, up to a constant."""
        return -0.5 * (discrimination - 1.0).square() - 0.125 * difficulty.square()

    def joint(
        self,
        statistics: Tensor,
        ability: Tensor,
        discrimination: Tensor,
        difficulty: Tensor,
    ) -> JointDensity:
        """Joint log density of ``1 x N x K`` scores and all parameters."""
        scores = statistics[0]
        logit = torch.outer(discrimination, ability) - difficulty.unsqueeze(-1)
        residual = scores - torch.sigmoid(logit)
        value = (scores * logit).sum() - softplus(logit).sum()
        value = value + self.ability_log_prior(ability).sum()
        value = value + self.item_log_prior(discrimination, difficulty).sum()
        return JointDensity(
            value,
            discrimination @ residual - ability,
            residual @ ability - (discrimination - 1.0),
            -residual.sum(-1) - 0.25 * difficulty,
        )
