"""AdamW on the marginal likelihood (Appendices A.4 and C.1 of the BayesAME paper)."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gp_eval.optim.lbfgsb import Fit
from gp_eval.optim.objective import Objective, write_parameters

__all__ = ["Progress", "fit_adamw", "step_schedule"]

Progress = Callable[[int, int], None]
"""Called with the number of finished steps and the number of all."""


def step_schedule(update: int, *, first: int = 500, floor: int = 50) -> int:
    """Steps of the update with this number, from 0 on: halved each time, to a floor.

    The paper says "500 gradient steps", then "progressively" fewer; the halving is
    ours.
    """
    return max(floor, first >> update) if first > floor else first


def fit_adamw(
    objective: Objective,
    *,
    steps: int,
    learning_rate: float,
    weight_decay: float = 0.01,
    progress: Progress | None = None,
) -> Fit:
    """Take a number of AdamW steps from the present parameters, and leave the last.

    After each step parameters are clipped to the bounds of the objective. There is no
    stopping rule: the objective is not convex, and the steps are the regularisation.

    Args:
        objective: What is minimised, as a function of raw parameters.
        steps: Number of steps.
        learning_rate: Of all parameters.
        weight_decay: torch's default; the paper gives none.
        progress: Told after every step.

    Raises:
        NotPositiveDefiniteError: If a covariance on the way has no Cholesky factor.
        ValueError: For a number of steps below 1, or a value that is not finite.
    """
    if steps < 1:
        raise ValueError(f"steps: expected at least 1, got {steps}")
    parameters = objective.parameters()
    if not parameters:
        return Fit(float("nan"), 0, True, "no trainable parameters")
    values, low, high = (
        torch.cat([part.detach().reshape(-1) for part in parts])
        for parts in zip(*(entry[1:] for entry in parameters), strict=True)
    )
    values.requires_grad_()
    optimizer = torch.optim.AdamW([values], lr=learning_rate, weight_decay=weight_decay)
    value = values.new_tensor(float("nan"))
    for step in range(steps):
        value, values.grad = objective(values.detach())
        if not bool(value.isfinite()):
            raise ValueError(f"objective: expected finite values, got {float(value)}")
        optimizer.step()
        with torch.no_grad():
            torch.clamp(values, low, high, out=values.data)
        if progress is not None:
            progress(step + 1, steps)
    write_parameters([entry[1] for entry in parameters], values.detach())
    message = f"{steps} AdamW steps; the value is that before the last one"
    return Fit(float(value), steps, True, message)
