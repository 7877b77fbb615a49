"""Class probabilities: from log-likelihoods, and at another temperature."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gp_eval.errors import DataError

__all__ = ["fit_temperatures", "probabilities_from_log_likelihoods", "soften"]

# The grid and the floor of the digits benchmark's own calibration.
_TEMPERATURES = torch.exp(torch.linspace(-3.0, 1.5, 19, dtype=torch.float64))
_FLOOR = 1e-4


def probabilities_from_log_likelihoods(
    log_likelihoods: Tensor | np.ndarray, *, mask: Tensor | np.ndarray | None = None
) -> Tensor:
    """Softmax over the classes of log-likelihoods or logits.

    Nothing in gp_eval guesses whether numbers are probabilities: whoever has
    log-likelihoods calls this once, before everything else.

    Args:
        log_likelihoods: A ``... x N x C`` array in nats; ``-inf`` marks padding. Those
            of a harness are summed over tokens, as they come; divide by the length
            before for the length-normalised choice.
        mask: ``N x C``, true where an item has the class. Default: all of them.

    Returns:
        Probabilities in the precision of the input, 0 where there is no class.

    Raises:
        DataError: For values that are NaN or ``+inf``, or rows without a finite value.
    """
    values = torch.as_tensor(log_likelihoods)
    if not values.is_floating_point():
        raise DataError(f"log_likelihoods: expected floats, got {values.dtype}")
    if mask is not None:
        values = values.masked_fill(
            ~torch.as_tensor(mask, dtype=torch.bool), -torch.inf
        )
    top = values.amax(-1)
    if not bool(top.isfinite().all()):  # NaN and +inf win amax, -inf is a row of them
        raise DataError(
            "log_likelihoods: expected numbers with -inf as padding and a finite one "
            f"for every item, not so in {int((~top.isfinite()).sum())} rows"
        )
    return torch.softmax(values, -1)


def soften(probabilities: Tensor, temperatures: Tensor) -> Tensor:
    r"""Probabilities at another temperature: :math:`p_c^{1/T} / \sum_d p_d^{1/T}`.

    They are floored at ``1e-4`` before: a hard 0 says nothing about how sure a model
    would be at another temperature. Classes with exactly 0 for *all* models are taken
    for padding and stay 0.

    Args:
        probabilities: ``K x N x C``.
        temperatures: One for each model, shape ``K``.
    """
    values = probabilities.double()
    present = values.amax(0, keepdim=True) > 0.0
    scaled = values.clamp_min(_FLOOR).log() / temperatures.reshape(-1, 1, 1)
    return torch.softmax(scaled.masked_fill(~present, -torch.inf), -1)


def fit_temperatures(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Temperature of each model with the least negative log-likelihood of the labels.

    Over 19 values from ``exp(-3)`` to ``exp(1.5)``, the grid of the digits benchmark.

    Args:
        probabilities: ``K x N x C``.
        labels: Right class of each item, shape ``N``.

    Returns:
        A tensor of shape ``K``.
    """
    labels = torch.as_tensor(labels).long()
    if labels.shape != probabilities.shape[1:2]:
        raise DataError(
            f"labels: expected shape {tuple(probabilities.shape[1:2])}, "
            f"got {tuple(labels.shape)}"
        )
    right = labels.reshape(1, -1, 1)
    present = probabilities.amax(0) > 0.0
    best = []
    for row in probabilities:  # one model at a time bounds the memory
        logs = row.double().clamp_min(_FLOOR).log().masked_fill(~present, -torch.inf)
        scaled = logs / _TEMPERATURES.reshape(-1, 1, 1)
        gold = scaled.gather(-1, right.expand(len(_TEMPERATURES), -1, 1)).squeeze(-1)
        loss = (scaled.logsumexp(-1) - gold).mean(-1)
        best.append(_TEMPERATURES[loss.argmin()])
    return torch.stack(best)
