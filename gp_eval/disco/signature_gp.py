"""A GP on signatures: the predictor of DISCO that knows how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import gpytorch
import numpy as np
import torch
from botorch.models.gpytorch import GPyTorchModel
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.models import ExactGP
from scipy.optimize import minimize
from torch import Tensor

from gp_eval.disco.prediction import Prediction
from gp_eval.errors import DataError
from gp_eval.kernels import DotProductKernel
from gp_eval.optim.objective import negative_log_marginal_likelihood
from gp_eval.settings import exact_inference

__all__ = ["FittedSignatureGP", "SignatureGP", "SignatureHyperparameters"]


def _log_scaled() -> Positive:
    """A positive parameter whose raw value is its logarithm."""
    return Positive(transform=torch.exp, inv_transform=torch.log)


@dataclass(frozen=True)
class SignatureHyperparameters:
    r"""Of :math:`k(x, x') = a\,m_{5/2}(\|x - x'\| / l) + b\,x^\top x'` and noise.

    Variances are of benchmark scores that were standardised over the references.

    Attributes:
        outputscale: ``a``, variance of the Matern part.
        lengthscale: ``l``, in units of the features.
        linear: ``b``, variance of the coefficients of the linear part.
        noise: Variance of what the signature does not tell.
    """

    outputscale: float
    lengthscale: float
    linear: float
    noise: float


class SignatureGP(ExactGP, GPyTorchModel):
    """Exact GP from features of signatures to standardised benchmark scores.

    A linear kernel, which alone is ridge regression with a prior, plus a Matern kernel
    for what is not linear and for distance: far from all references the variance
    grows. Any kernel takes their place by ``covar_module``. Evaluate it inside
    :func:`gp_eval.settings.exact_inference`.

    Features must keep the distance of later models from the references, as
    :meth:`.Principal.whole` does. Principal components alone do not: ``K`` references
    span few dimensions, and whatever a later model has beyond them is projected away.

    Args:
        train_X: Features of the references, ``K x F``, centred.
        train_Y: Their standardised benchmark scores, ``K x 1``.
        covar_module: Any kernel over features.
    """

    _num_outputs = 1

    def __init__(
        self, train_X: Tensor, train_Y: Tensor, *, covar_module: Kernel | None = None
    ) -> None:
        if train_X.ndim != 2 or train_Y.shape != (train_X.shape[0], 1):
            raise ValueError(
                "train_X, train_Y: expected shapes K x F and K x 1, got "
                f"{tuple(train_X.shape)} and {tuple(train_Y.shape)}"
            )
        likelihood = GaussianLikelihood(noise_constraint=_log_scaled())
        super().__init__(train_X, train_Y.squeeze(-1), likelihood)
        self.mean_module = ZeroMean()
        self.covar_module = covar_module or ScaleKernel(
            MaternKernel(nu=2.5, lengthscale_constraint=_log_scaled()),
            outputscale_constraint=_log_scaled(),
        ) + ScaleKernel(DotProductKernel(), outputscale_constraint=_log_scaled())
        self.to(train_X)

    def forward(self, x: Tensor) -> MultivariateNormal:
        """Prior at features ``... x T x F``."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def _parameters(model: SignatureGP) -> list[torch.nn.Parameter]:
    """Raw parameters in the order of :class:`SignatureHyperparameters`."""
    matern, linear = model.covar_module.kernels
    return [
        matern.raw_outputscale,
        matern.base_kernel.raw_lengthscale,
        linear.raw_outputscale,
        model.likelihood.noise_covar.raw_noise,
    ]


def _write(model: SignatureGP, logs: np.ndarray) -> None:
    with torch.no_grad():
        for parameter, value in zip(_parameters(model), logs, strict=True):
            parameter.fill_(float(value))


def _maximise_likelihood(
    model: SignatureGP, features: Tensor, target: Tensor
) -> SignatureHyperparameters:
    """The best of three starts of L-BFGS-B on the log-marginal likelihood.

    It has several modes: much noise and a smooth mean, or little noise and a wiggly
    one. Bounds are relative to the spread of the features.
    """
    distance = float(torch.pdist(features).median()) or 1.0
    slope = 1.0 / float(features.square().sum(-1).mean())
    parameters = _parameters(model)
    identity = torch.eye(len(target), dtype=torch.float64)

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        _write(model, logs)
        model.zero_grad()
        gram = model.covar_module(features).to_dense()
        value = negative_log_marginal_likelihood(
            gram + model.likelihood.noise * identity,
            target,
            name="covariance of the references' scores",
        )
        value.backward()
        slopes = [0.0 if p.grad is None else float(p.grad.sum()) for p in parameters]
        return float(value.detach()), np.array(slopes)

    low = np.log([1e-4, 0.1 * distance, 1e-6 * slope, 1e-6])
    high = np.log([1e2, 1e2 * distance, 1e3 * slope, 1e1])
    found = []
    for start in ((1.0, 1.0, 1.0, 0.1), (0.1, 1.0, 1.0, 0.01), (1.0, 5.0, 0.01, 0.01)):
        scaled = np.log(np.array(start) * [1.0, distance, slope, 1.0])
        result = minimize(
            loss, scaled, jac=True, method="L-BFGS-B", bounds=np.stack([low, high], 1)
        )
        found.append((float(result.fun), result.x))
    best = min(found, key=lambda pair: pair[0])[1]
    return SignatureHyperparameters(*(math.exp(value) for value in best))


class FittedSignatureGP:
    """The GP with its hyperparameters, ready to predict.

    Args:
        features: Features of the references, ``K x F``.
        targets: Their benchmark scores, shape ``K``.
        hyperparameters: Those of :class:`SignatureGP`. Default: the maximum of the
            marginal likelihood.

    Raises:
        DataError: If all references have the same benchmark score.
    """

    def __init__(
        self,
        features: Tensor,
        targets: Tensor,
        hyperparameters: SignatureHyperparameters | None = None,
    ) -> None:
        self.features, self.targets = features, targets
        self.centre, self.spread = targets.mean(), targets.std(correction=0)
        if not float(self.spread) > 0.0:
            raise DataError("targets: all references have the same benchmark score")
        standardised = (targets - self.centre) / self.spread
        self.model = SignatureGP(features, standardised.unsqueeze(-1))
        with exact_inference():
            if hyperparameters is None:
                hyperparameters = _maximise_likelihood(
                    self.model, features, standardised
                )
            self.hyperparameters = hyperparameters
            _write(self.model, np.log([*vars(hyperparameters).values()]))
        self.model.eval()

    def predict(self, features: Tensor) -> Prediction:
        """Mean and standard deviation of the benchmark scores, noise included.

        The noise belongs to it: two models with the same responses to the chosen items
        have different benchmark scores.
        """
        # GPyTorch warns where the features are those of the references.
        with torch.no_grad(), exact_inference(), gpytorch.settings.debug(False):
            posterior = self.model.likelihood(self.model(features))
            mean, variance = posterior.mean, posterior.variance
        return Prediction(
            self.centre + self.spread * mean, self.spread * variance.sqrt()
        )

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Hyperparameters, and features and scores of the references."""
        return dict(vars(self.hyperparameters)), {
            "features": self.features.numpy(),
            "targets": self.targets.numpy(),
        }

    @classmethod
    def restore(cls, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """The inverse of :meth:`state`; nothing is fitted again."""
        return cls(
            torch.from_numpy(arrays["features"]),
            torch.from_numpy(arrays["targets"]),
            SignatureHyperparameters(**settings),
        )
