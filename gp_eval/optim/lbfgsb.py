"""L-BFGS-B on the marginal likelihood (Appendix A.4 of the BayesAME paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from gpytorch.kernels import Kernel
from scipy.optimize import minimize

from gp_eval.optim.objective import Objective, write_parameters

__all__ = ["Fit", "Parametrization", "fit_kernel"]

Parametrization = Literal["raw", "log"]


@dataclass(frozen=True)
class Fit:
    """Outcome of one hyperparameter update.

    Attributes:
        value: Negative log-marginal likelihood at the optimum, in nats.
        evaluations: Evaluations of the objective.
        converged: Whether the optimizer reported success.
        message: The optimizer's own words.
    """

    value: float
    evaluations: int
    converged: bool
    message: str


def fit_kernel(
    kernel: Kernel, objective: Objective, *, parametrization: Parametrization = "raw"
) -> Fit:
    """Minimise Eq. (11) from the kernel's present parameters and leave the optimum.

    scipy's L-BFGS-B with its default tolerances, on the objective itself rather than
    its mean per datum, which would loosen the gradient tolerance ``n`` times.

    Args:
        kernel: The kernel to change in place.
        objective: Eq. (11) as a function of the kernel's raw parameters.
        parametrization: ``"raw"`` as in the paper, or ``"log"``: the logarithm of the
            raw parameters, which must then be positive; it takes about half the
            evaluations and stops less often before the optimum.

    Raises:
        NotPositiveDefiniteError: If a covariance on the way has no Cholesky factor.
        ValueError: For ``"log"`` with a parameter that may be negative.
    """
    parameters = objective.parameters()
    if not parameters:
        return Fit(float("nan"), 0, True, "no trainable parameters")
    log = parametrization == "log"
    if log and any(bool((low <= 0).any()) for _, _, low, _ in parameters):
        names = [name for name, _, low, _ in parameters if bool((low <= 0).any())]
        raise ValueError(f"parametrization='log': parameters may be <= 0: {names}")
    device = parameters[0][1].device
    start = torch.cat([p.detach().reshape(-1) for _, p, _, _ in parameters])
    bounds = np.array(
        [
            pair
            for _, _, low, high in parameters
            for pair in zip(
                low.reshape(-1).tolist(), high.reshape(-1).tolist(), strict=True
            )
        ]
    )

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        values = torch.from_numpy(np.exp(x) if log else x).to(device)
        value, gradient = objective(values)
        slope = gradient.cpu().numpy()
        return float(value), slope * np.exp(x) if log else slope

    origin = start.double().cpu().numpy()
    result = minimize(
        value_and_gradient,
        np.log(origin) if log else origin,
        jac=True,
        method="L-BFGS-B",
        bounds=np.log(bounds) if log else bounds,
    )
    optimum = torch.from_numpy(np.exp(result.x) if log else result.x).to(device)
    write_parameters([parameter for _, parameter, _, _ in parameters], optimum)
    return Fit(
        float(result.fun), int(result.nfev), bool(result.success), str(result.message)
    )
