"""What BoTorch models over item indices have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.posterior import Posterior
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor

from gp_eval.models.protocol import as_items

__all__ = ["ItemModel"]


class ItemModel(Model):
    """BoTorch model of one target's scores; inputs are item *indices*.

    ``X`` is ``... x q x 1``, so that uniqueness, ``X_avoid`` and pending points mean
    what they mean in BoTorch. Subclasses say what mean and covariance of items are.
    """

    n_items: int
    n_inputs = 1
    """Columns of ``X``."""

    @property
    def num_outputs(self) -> int:
        """One output: the score."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """No batch dimensions."""
        return torch.Size()

    def subset_output(self, idcs: list[int]) -> Self:
        """The model itself, for the only output there is."""
        if list(idcs) != [0]:
            raise ValueError(f"idcs: expected [0], the only output, got {idcs}")
        return self

    def points(self, X: Tensor) -> Tensor:
        """Checked item indices ``... x q`` of inputs ``... x q x 1``."""
        as_items(X, self.n_items)
        return X.squeeze(-1).long()

    @abstractmethod
    def latent(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Mean ``... x q`` and covariance ``... x q x q`` of items, without noise."""

    @abstractmethod
    def score_covariance(self, items: Tensor) -> Tensor:
        """Covariance ``... x q x q`` of the scores of items ``... x q``, with noise."""

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """Joint posterior of items, or of their scores.

        Args:
            X: A ``... x q x 1`` tensor of item indices.
            output_indices: Must be ``None`` or ``[0]``.
            observation_noise: Add the noise of the scores, or this, ``... x q x 1``.
            posterior_transform: Applied to the posterior.
        """
        if output_indices is not None:
            self.subset_output(output_indices)
        items = self.points(X)
        mean, covariance = self.latent(items)
        if torch.is_tensor(observation_noise):
            covariance = covariance + torch.diag_embed(observation_noise.squeeze(-1))
        elif observation_noise:
            covariance = self.score_covariance(items)
        # Lazy: without noise the covariance is singular, for items of one bucket say.
        posterior = GPyTorchPosterior(
            MultivariateNormal(mean, to_linear_operator(covariance))
        )
        if posterior_transform is None:
            return posterior
        return posterior_transform(posterior=posterior, X=X)
