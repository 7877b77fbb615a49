"""Scores of several targets in the form that the marginal likelihood takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["PairScores"]


@dataclass(frozen=True)
class PairScores:
    r"""Mean scores of the ``m`` evaluated pairs of target and bucket.

    The mean of :math:`n_b` scores of a pair has the noise variance :math:`\sigma^2 N_b
    / n_b`. The likelihood of the scores themselves has further terms, the spread around
    those means: :math:`\sum_b \frac{n_b - 1}{2} \log(\sigma^2 N_b) + \frac12 \log n_b +
    \frac{SS_b}{2 \sigma^2 N_b}`. Eq. (11) of the BayesAME paper drops them, which is
    right only while :math:`\sigma^2` is fixed.

    Attributes:
        target: Target of each pair, integers of shape ``m``.
        bucket: Bucket of each pair, integers of shape ``m``.
        residual: Mean score minus prior mean, shape ``m``.
        noise_scale: :math:`N_b / n_b`, shape ``m``.
        repeats: :math:`\sum_b (n_b - 1)`.
        spread: :math:`\sum_b SS_b / N_b`, in squared score units.
        offset: The terms that depend on nothing.
    """

    target: Tensor
    bucket: Tensor
    residual: Tensor
    noise_scale: Tensor
    repeats: Tensor
    spread: Tensor
    offset: Tensor

    @classmethod
    def from_scores(
        cls, pair: Tensor, score: Tensor, prior_mean: Tensor, counts: Tensor
    ) -> PairScores:
        """Collect scores by pair.

        Args:
            pair: Pair ``t * B + b`` of each evaluated item, integers of shape ``n``.
            score: Its score, shape ``n``.
            prior_mean: Prior mean by pair, shape ``T B``.
            counts: ``N_b`` of the buckets, shape ``B``.
        """
        seen, place, n_scores = torch.unique(
            pair, return_inverse=True, return_counts=True
        )
        n = n_scores.to(score)
        mean = torch.zeros_like(n).index_add_(0, place, score) / n
        target, bucket = seen // counts.shape[0], seen % counts.shape[0]
        size = counts[bucket]
        return cls(
            target=target,
            bucket=bucket,
            residual=mean - prior_mean[seen],
            noise_scale=size / n,
            repeats=(n - 1.0).sum(),
            spread=((score - mean[place]).square() / size[place]).sum(),
            offset=0.5 * (((n - 1.0) * size.log()).sum() + n.log().sum()),
        )

    def spread_terms(self, noise: Tensor) -> Tensor:
        r"""What the likelihood by item has beyond the one by bucket, at a sigma^2."""
        return self.offset + 0.5 * (self.repeats * noise.log() + self.spread / noise)

    def spread_slope(self, noise: Tensor) -> Tensor:
        r"""Derivative of :meth:`spread_terms` in sigma^2."""
        return 0.5 * (self.repeats - self.spread / noise) / noise
