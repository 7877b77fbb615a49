"""What was observed, by item (Eq. (7)) or by bucket mean (Eq. (8))."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Observations"]


@dataclass(frozen=True)
class Observations:
    r"""``m`` independent noisy values of bucket abilities.

    The two forms give the same posterior of the abilities (Appendix A.1 of the
    BayesAME paper); the bucket form has at most ``B`` values however many items were
    evaluated.

    Attributes:
        bucket: Bucket of each value, integers of shape ``m``.
        value: Scores, or mean scores of buckets, shape ``m``.
        noise: Noise variance of each value, shape ``m``.
        constant: What :math:`-\log p` of the item scores has beyond that of these
            values (without the ``log 2 pi`` terms of either). It depends on
            :math:`\sigma^2` alone; Eq. (11) leaves it out, which matters as soon as
            :math:`\sigma^2` is learned.
    """

    bucket: Tensor
    value: Tensor
    noise: Tensor
    constant: Tensor

    @classmethod
    def by_item(cls, bucket: Tensor, score: Tensor, noise: Tensor) -> Observations:
        r"""One value an item: the form of Eq. (7).

        Args:
            bucket: Buckets of the evaluated items, shape ``n``.
            score: Their scores, shape ``n``.
            noise: Noise variance :math:`N_b \sigma^2` of all buckets, shape ``B``.
        """
        return cls(bucket, score, noise[bucket], score.new_zeros(()))

    @classmethod
    def by_bucket(cls, bucket: Tensor, score: Tensor, noise: Tensor) -> Observations:
        """One value a bucket, its mean score: the form of Eq. (8), same arguments."""
        n = torch.bincount(bucket, minlength=noise.shape[0])
        seen = torch.nonzero(n).squeeze(-1)
        total = score.new_zeros(noise.shape[0]).index_add_(0, bucket, score)
        n_seen, noise_seen = n[seen].to(score), noise[seen]
        mean = total[seen] / n_seen
        centre = score.new_zeros(noise.shape[0]).index_copy_(0, seen, mean)
        spread = ((score - centre[bucket]).square() / noise[bucket]).sum()
        constant = 0.5 * (
            ((n_seen - 1) * noise_seen.log()).sum() + n_seen.log().sum() + spread
        )
        return cls(seen, mean, noise_seen / n_seen, constant)

    @classmethod
    def shortest(cls, bucket: Tensor, score: Tensor, noise: Tensor) -> Observations:
        """By item while ``n < B``, by bucket from ``n >= B`` on, as in the paper."""
        form = cls.by_item if bucket.shape[0] < noise.shape[0] else cls.by_bucket
        return form(bucket, score, noise)
