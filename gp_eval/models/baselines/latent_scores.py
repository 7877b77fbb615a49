"""Bayesian quadrature with the references' empirical covariance as prior."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from gp_eval.linalg import RowAppendPosterior
from gp_eval.models.item_model import ItemModel

__all__ = ["LatentScoreModel", "ScoreFeatureTable"]


class ScoreFeatureTable:
    r"""Sample covariance of items over the references, as a kernel table.

    :math:`\Sigma = X X^\top` with rows :math:`x_i = (\phi_i - \bar\phi_i) /
    \sqrt{K - 1}`, which are kept in place of the ``N x N`` matrix.

    Args:
        scores: Reference scores, ``N x K`` with ``K >= 2``.
    """

    def __init__(self, scores: Tensor) -> None:
        centred = scores - scores.mean(-1, keepdim=True)
        self.features = centred / (scores.shape[-1] - 1) ** 0.5

    def refresh(self) -> None:
        """Nothing to do: there are no hyperparameters."""

    def row(self, bucket: int) -> Tensor:
        """Row ``Sigma[bucket]``, shape ``N``."""
        return self.features @ self.features[bucket]

    def block(self, rows: Tensor, columns: Tensor | slice) -> Tensor:
        """Block ``Sigma[rows][:, columns]``."""
        return self.features[rows] @ self.features[columns].T

    def diagonal(self) -> Tensor:
        """Prior variances, shape ``N``."""
        return self.features.square().sum(-1)

    def matvec(self, vector: Tensor) -> Tensor:
        """Product ``Sigma @ vector``, shape ``N``."""
        return self.features @ (self.features.T @ vector)


class LatentScoreModel(ItemModel):
    r"""Latent scores :math:`\theta` with :math:`s_i = \theta_i + e_i`, item by item.

    :math:`\theta \sim N(\bar\phi, \Sigma)` with the table above, :math:`e_i \sim
    N(0, \sigma^2)`, and the benchmark score is that of the *latent* scores,
    :math:`R = \sum_i w_i \theta_i`, evaluated items included. An append costs
    :math:`O((n + K) N)`. Inputs ``X`` are ``... x q x 1`` item indices.

    Args:
        scores: Reference scores, ``N x K`` with ``K >= 2``.
        weights: Weights of the items in ``R``, shape ``N``, with sum 1.
        noise: :math:`\sigma^2`, in squared score units.
    """

    def __init__(self, scores: Tensor, weights: Tensor, *, noise: float) -> None:
        super().__init__()
        self.noise = noise
        self.weights = weights
        self.n_items = weights.shape[0]
        self.engine = RowAppendPosterior(
            ScoreFeatureTable(scores), scores.mean(-1), weights
        )

    def append(self, item: int, score: float) -> None:
        """Condition on the score of one more item, in place."""
        # Weight 0: an evaluated item's latent score stays part of R.
        self.engine.append(item, score, self.noise, 0.0)

    @contextmanager
    def lookahead(self) -> Iterator[Callable[[int], None]]:
        """Condition the *variances* on items before their scores are known.

        Yields a function that adds one item; on exit the model is as before.
        """
        state = self.engine.snapshot()

        def add(item: int) -> None:
            self.append(item, float(self.engine.mean[item]))

        try:
            yield add
        finally:
            self.engine.restore(state)

    def performance_mean(self) -> Tensor:
        """Posterior mean of ``R``, a scalar."""
        return self.weights.dot(self.engine.mean)

    def performance_variance(self) -> Tensor:
        """Posterior variance of ``R``, a scalar; rounding below 0 is cut off."""
        rest = self.engine.covariance_with_rest
        return self.weights.dot(rest).clamp_min(0.0)

    def performance_covariance(self, items: Tensor) -> Tensor:
        """Posterior covariance of ``R`` with the scores of unevaluated items."""
        return self.engine.covariance_with_rest[items]

    def score_variance(self, items: Tensor) -> Tensor:
        """Predictive variances of the scores of items, any shape."""
        return self.engine.variance[items] + self.noise

    def score_covariance(self, items: Tensor) -> Tensor:
        """Predictive covariance ``... x q x q`` of items ``... x q``, with noise."""
        noise = torch.full_like(self.weights[items], self.noise)
        return self.engine.covariance(items, items) + torch.diag_embed(noise)

    def latent(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and covariance of the latent scores of items ``... x q``."""
        return self.engine.mean[items], self.engine.covariance(items, items)
