"""Class probabilities: from log-likelihoods, and at another temperature."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gp_eval.errors import DataError

__all__ = [
    "TOLERANCE",
    "class_mask",
    "fit_temperatures",
    "normalise_",
    "probabilities_from_log_likelihoods",
    "soften",
]

# The grid and the floor of the digits benchmark's own calibration.
_TEMPERATURES = torch.exp(torch.linspace(-3.0, 1.5, 19, dtype=torch.float64))
_FLOOR = 1e-4
TOLERANCE = 5e-3  # half-precision probabilities of 31 classes sum to 1 within 5e-4


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


def normalise_(block: Tensor, *, first: int = 0) -> Tensor:
    """Divide probabilities by their sum in place: half precision rounds them.

    Args:
        block: ``K x N x C`` in double precision.
        first: Index of the first item, for the error.

    Raises:
        DataError: For values that are no probabilities, with the items' indices.
    """
    total = block.sum(-1, keepdim=True)
    lowest, sums = float(block.amin()), (float(total.amin()), float(total.amax()))
    if not (
        lowest >= 0.0 and sums[0] >= 1.0 - TOLERANCE and sums[1] <= 1.0 + TOLERANCE
    ):
        near = (total.squeeze(-1) - 1.0).abs() <= TOLERANCE
        fine = (block >= 0.0).all(-1) & near
        items = torch.nonzero(~fine.all(0)).flatten() + first
        raise DataError(
            "probabilities: expected numbers >= 0 with sum 1 over the classes and 0 "
            f"as padding, not so on items {items[:5].tolist()}; log-likelihoods go "
            "through probabilities_from_log_likelihoods"
        )
    return block.div_(total)


def soften(
    probabilities: Tensor, temperatures: Tensor, *, mask: Tensor | None = None
) -> Tensor:
    r"""Probabilities at another temperature: :math:`p_c^{1/T} / \sum_d p_d^{1/T}`.

    They are floored at ``1e-4`` before: a hard 0 says nothing about how sure a model
    would be at another temperature.

    Args:
        probabilities: ``K x N x C``.
        temperatures: One for each model, shape ``K``.
        mask: ``N x C``, true where an item has the class. Default: classes that no
            model gives any probability are padding.
    """
    mask = class_mask(probabilities) if mask is None else mask
    scaled = probabilities.double().clamp_min(_FLOOR).log()
    scaled /= temperatures.reshape(-1, 1, 1)
    return torch.softmax(scaled.masked_fill(~mask, -torch.inf), -1)


def class_mask(probabilities: Tensor) -> Tensor:
    """Classes to which some model gives a probability, ``N x C``, of ``K x N x C``."""
    return probabilities.amax(0) > 0.0


def fit_temperatures(
    probabilities: Tensor, labels: Tensor, *, mask: Tensor | None = None
) -> Tensor:
    """Temperature of each model with the least negative log-likelihood of the labels.

    Over 19 values from ``exp(-3)`` to ``exp(1.5)``, the grid of the digits benchmark.

    Args:
        probabilities: ``K x N x C``.
        labels: Right class of each item, shape ``N``.
        mask: As in :func:`soften`.

    Returns:
        A tensor of shape ``K``.

    Raises:
        DataError: For labels of another shape or that are no class of their item.
    """
    mask = class_mask(probabilities) if mask is None else mask
    labels = torch.as_tensor(labels).long()
    if labels.shape != mask.shape[:1]:
        raise DataError(
            f"labels: expected shape {tuple(mask.shape[:1])}, got {tuple(labels.shape)}"
        )
    inside = (labels >= 0) & (labels < mask.shape[1])
    known = inside & mask.gather(1, labels.where(inside, 0).unsqueeze(1)).squeeze(1)
    if not bool(known.all()):
        items = torch.nonzero(~known).flatten()[:5].tolist()
        raise DataError(f"labels: not among the classes of the items {items}")
    best = []
    for row in probabilities:  # one model at a time bounds the memory
        logs = row.double().clamp_min(_FLOOR).log().masked_fill(~mask, -torch.inf)
        scaled = logs / _TEMPERATURES.reshape(-1, 1, 1)
        right = labels.reshape(1, -1, 1).expand(len(_TEMPERATURES), -1, 1)
        loss = scaled.logsumexp(-1) - scaled.gather(-1, right).squeeze(-1)
        best.append(_TEMPERATURES[loss.mean(-1).argmin()])
    return torch.stack(best)
