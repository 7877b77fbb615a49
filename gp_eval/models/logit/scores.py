r"""How scores arise from latent values ``f``: the two cases of Appendix B.3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal, Protocol

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from gp_eval.linalg import KernelTable, Observations
from gp_eval.models.logit.laplace_objective import LaplaceObjective
from gp_eval.models.logit.sites import Counts, Sites, gaussian_sites, laplace_sites
from gp_eval.optim import make_objective
from gp_eval.optim.objective import Objective

__all__ = ["BinaryScores", "ContinuousScores", "ScoreKind", "Scores", "kind_of"]

ScoreKind = Literal["binary", "continuous"]


class Scores(Protocol):
    """A likelihood of scores given latent values of ``B`` buckets."""

    def check_score(self, score: float) -> None:
        """Raise ``ValueError`` for a score that cannot be."""

    def check(self, scores: Mapping[int, float]) -> None:
        """Raise ``ValueError`` for an item whose score cannot be."""

    def sites(
        self,
        prior: Tensor,
        prior_mean: Tensor,
        bucket: Tensor,
        score: Tensor,
        start: Tensor,
    ) -> Sites:
        """The posterior given ``n`` items.

        Args:
            prior: Prior covariance, ``B x B``.
            prior_mean: Prior mean, shape ``B``.
            bucket: Buckets of the evaluated items, shape ``n``.
            score: Their scores, shape ``n``.
            start: Coefficients of a posterior nearby, or zeros, shape ``B``.
        """

    def objective(
        self,
        kernel: Kernel,
        phi: Tensor,
        prior_mean: Tensor,
        bucket: Tensor,
        score: Tensor,
        table: KernelTable,
    ) -> Objective:
        """Minus the log-marginal likelihood of ``n`` scores, for the optimizer."""

    def noise(self, slope: Tensor) -> Tensor:
        """Variance of an item's score around its ability, shape ``B``.

        Args:
            slope: Of :class:`~gp_eval.models.logit.abilities.Abilities`.
        """


class _Checked(ABC):
    """The two checks that follow from which scores there can be."""

    expected: str

    @abstractmethod
    def allows(self, score: float) -> bool:
        """Whether there can be such a score."""

    def check_score(self, score: float) -> None:
        """Raise ``ValueError`` for a score that cannot be."""
        if not self.allows(score):
            raise ValueError(f"expected {self.expected}, got {score}")

    def check(self, scores: Mapping[int, float]) -> None:
        """Raise ``ValueError`` for an item whose score cannot be."""
        wrong = {i: s for i, s in scores.items() if not self.allows(s)}
        _refuse(wrong, self.expected)


class BinaryScores(_Checked):
    r"""Right or wrong, by Laplace's approximation.

    :math:`p(s_i \mid f) = \sigma(f_b)^{s_i} (1 - \sigma(f_b))^{1 - s_i}`.
    """

    expected = "0 or 1"

    def allows(self, score: float) -> bool:
        """Whether the score is 0 or 1."""
        return score in (0.0, 1.0)

    def sites(
        self,
        prior: Tensor,
        prior_mean: Tensor,
        bucket: Tensor,
        score: Tensor,
        start: Tensor,
    ) -> Sites:
        """The mode and its curvature, see :class:`Scores`."""
        counts = Counts.of_items(bucket, score, prior_mean.shape[0])
        seen = counts.bucket
        gram = prior[seen][:, seen]
        return laplace_sites(gram, prior_mean[seen], counts, start[seen])

    def objective(
        self,
        kernel: Kernel,
        phi: Tensor,
        prior_mean: Tensor,
        bucket: Tensor,
        score: Tensor,
        table: KernelTable,
    ) -> Objective:
        """Laplace's marginal likelihood, see :class:`Scores`."""
        counts = Counts.of_items(bucket, score, prior_mean.shape[0])
        return LaplaceObjective(kernel, phi, prior_mean, counts)

    def noise(self, slope: Tensor) -> Tensor:
        r"""Mean of :math:`\theta (1 - \theta)`, which *is* the slope."""
        return slope


class ContinuousScores(_Checked):
    r"""Scores in [0, 1]: :math:`\operatorname{logit} s_i \sim N(f_b, N_b \sigma^2)`.

    Args:
        noise: :math:`N_b \sigma^2`, in squared logits, shape ``B``.
        clip: Scores are clipped to ``[clip, 1 - clip]`` before the logit.
    """

    def __init__(self, noise: Tensor, clip: float) -> None:
        self._noise, self.clip = noise, clip

    expected = "0 to 1"

    def allows(self, score: float) -> bool:
        """Whether the score is in [0, 1]."""
        return 0.0 <= score <= 1.0

    def observations(self, bucket: Tensor, score: Tensor) -> Observations:
        """Mean logits by bucket, of ``n`` items."""
        logits = torch.logit(score.clamp(self.clip, 1.0 - self.clip))
        return Observations.by_bucket(bucket, logits, self._noise)

    def sites(
        self,
        prior: Tensor,
        prior_mean: Tensor,
        bucket: Tensor,
        score: Tensor,
        start: Tensor,
    ) -> Sites:
        """The exact posterior, see :class:`Scores`."""
        data = self.observations(bucket, score)
        seen = data.bucket
        return gaussian_sites(prior[seen][:, seen], data.value - prior_mean[seen], data)

    def objective(
        self,
        kernel: Kernel,
        phi: Tensor,
        prior_mean: Tensor,
        bucket: Tensor,
        score: Tensor,
        table: KernelTable,
    ) -> Objective:
        """Eq. (11) of the logits, see :class:`Scores`."""
        data = self.observations(bucket, score)
        return make_objective(kernel, phi, prior_mean, data, table=table)

    def noise(self, slope: Tensor) -> Tensor:
        """That of the logits, through the slope."""
        return slope.square() * self._noise


def kind_of(scores: Tensor) -> ScoreKind:
    """``"binary"`` if all scores are 0 or 1, ``"continuous"`` if in [0, 1].

    Raises:
        ValueError: For scores outside [0, 1].
    """
    if bool(((scores == 0.0) | (scores == 1.0)).all()):
        return "binary"
    if not bool(((scores >= 0.0) & (scores <= 1.0)).all()):
        raise ValueError(
            "references: logit-normal models are for scores in [0, 1], got "
            f"{float(scores.min()):.4g} to {float(scores.max()):.4g}"
        )
    return "continuous"


def _refuse(bad: Mapping[int, float], expected: str) -> None:
    if bad:
        item, score = next(iter(bad.items()))
        raise ValueError(f"scores: expected {expected}, got {score} of item {item}")
