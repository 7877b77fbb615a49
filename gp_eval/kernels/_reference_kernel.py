r"""What the kernels over reference score vectors have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import Kernel
from gpytorch.priors import Prior
from torch import Tensor

__all__ = ["LOWER_BOUND", "ReferenceKernel"]

LOWER_BOUND = 1e-5
"""Lower bound of ``alpha`` and ``beta`` (Appendix A.4 of the BayesAME paper)."""


class ReferenceKernel(Kernel):
    r"""Kernel of a weighted distance of reference score vectors, in ``alpha, beta``.

    Subclasses say in :meth:`from_squared_distance` how the squared distance
    :math:`(\phi - \phi')^\top W (\phi - \phi')` becomes a covariance.

    The constraints carry no transform: ``raw_alpha`` *is* ``alpha``, so an optimizer
    sees the paper's parameters and their bound of ``1e-5``.

    Args:
        weights: A ``K``-dim tensor of non-negative reference weights ``w``, the
            diagonal of :math:`W`; default the identity.
        batch_shape: Batch shape of the hyperparameters.
        active_dims: Input columns the kernel reads.
        alpha_constraint: Constraint on ``alpha``; default ``alpha >= 1e-5``.
        beta_constraint: Constraint on ``beta``; default ``beta >= 1e-5``.
        alpha_prior: Prior on ``alpha``.
        beta_prior: Prior on ``beta``.

    Attributes:
        alpha (Tensor): Prior variance, ``batch_shape x 1 x 1``, in squared score units.
        beta (Tensor): Inverse scale of distances, ``batch_shape x 1 x 1``.
    """

    weights: Tensor
    has_lengthscale = False
    is_stationary = True

    def __init__(
        self,
        *,
        weights: Tensor | None = None,
        batch_shape: torch.Size | None = None,
        active_dims: tuple[int, ...] | None = None,
        alpha_constraint: Interval | None = None,
        beta_constraint: Interval | None = None,
        alpha_prior: Prior | None = None,
        beta_prior: Prior | None = None,
    ) -> None:
        super().__init__(batch_shape=batch_shape, active_dims=active_dims)
        if weights is not None and not bool((weights >= 0).all()):
            raise ValueError(f"weights: expected values >= 0, got {weights.tolist()}")
        for name, constraint in (
            ("alpha", alpha_constraint),
            ("beta", beta_constraint),
        ):
            self.register_parameter(
                f"raw_{name}", torch.nn.Parameter(torch.ones(*self.batch_shape, 1, 1))
            )
            default = GreaterThan(LOWER_BOUND, transform=None)
            self.register_constraint(f"raw_{name}", constraint or default)
        for name in ("alpha", "beta"):
            setattr(self, name, torch.ones_like(getattr(self, f"raw_{name}")))
        if alpha_prior is not None:
            self.register_prior("alpha_prior", alpha_prior, _get_alpha, _set_alpha)
        if beta_prior is not None:
            self.register_prior("beta_prior", beta_prior, _get_beta, _set_beta)
        # Width 0 stands for Eq. (1), so that state dicts always hold the key; batch
        # dimensions lead, as in every GPyTorch kernel, so that kernel[i] works.
        weights = torch.empty(0) if weights is None else weights
        shape = (*self.batch_shape, 1, weights.shape[-1])
        self.register_buffer("weights", weights.expand(shape).clone())

    @property
    def alpha(self) -> Tensor:
        """Prior variance."""
        return _plain(self.raw_alpha_constraint.transform(self.raw_alpha))

    @alpha.setter
    def alpha(self, value: Tensor | float) -> None:
        self._set("raw_alpha", value)

    @property
    def beta(self) -> Tensor:
        """Inverse scale of distances."""
        return _plain(self.raw_beta_constraint.transform(self.raw_beta))

    @beta.setter
    def beta(self, value: Tensor | float) -> None:
        self._set("raw_beta", value)

    def _set(self, raw_name: str, value: Tensor | float) -> None:
        raw = getattr(self, raw_name)
        # as_tensor in the parameter's dtype: GPyTorch's setters go through float32.
        value = torch.as_tensor(value, dtype=raw.dtype, device=raw.device).detach()
        constraint = getattr(self, f"{raw_name}_constraint")
        self.initialize(
            **{raw_name: constraint.inverse_transform(value).expand_as(raw)}
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        saved = state_dict.get(f"{prefix}weights")
        if saved is not None and saved.shape != self.weights.shape:
            self.weights = torch.empty_like(saved, device=self.weights.device)
        super()._load_from_state_dict(state_dict, prefix, *args)

    @abstractmethod
    def from_squared_distance(
        self, distance: Tensor, alpha: Tensor, beta: Tensor, n_references: int
    ) -> Tensor:
        """Covariance of pairs of rows at these squared distances, of their shape."""

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Covariance of ``... x n x K`` with ``... x m x K`` score vectors."""
        if last_dim_is_batch:
            raise RuntimeError(
                f"{type(self).__name__} does not accept the last_dim_is_batch argument."
            )
        n_references = x1.shape[-1]
        x1, x2 = self.scaled(x1), self.scaled(x2)
        distance = self._squared_distance(x1, x2, diag=diag)
        alpha, beta = self.alpha, self.beta
        if diag:
            alpha, beta = alpha.squeeze(-1), beta.squeeze(-1)
        return self.from_squared_distance(distance, alpha, beta, n_references)

    def scaled(self, phi: Tensor) -> Tensor:
        """Score vectors ``... x n x K`` times the roots of the weights."""
        if not self.weights.shape[-1]:
            return phi
        if self.weights.shape[-1] != phi.shape[-1]:
            raise ValueError(
                f"weights: expected one per reference ({phi.shape[-1]}), "
                f"got {self.weights.shape[-1]}"
            )
        return phi * self.weights.sqrt()

    def _squared_distance(self, x1: Tensor, x2: Tensor, *, diag: bool) -> Tensor:
        return self.covar_dist(x1, x2, square_dist=True, diag=diag)


def _plain(value: Tensor) -> Tensor:
    """No ``Parameter``, which torch would register where it is assigned."""
    return value.view_as(value)


def _get_alpha(kernel: ReferenceKernel) -> Tensor:
    return kernel.alpha


def _set_alpha(kernel: ReferenceKernel, value: Tensor | float) -> None:
    kernel.alpha = value


def _get_beta(kernel: ReferenceKernel) -> Tensor:
    return kernel.beta


def _set_beta(kernel: ReferenceKernel, value: Tensor | float) -> None:
    kernel.beta = value
