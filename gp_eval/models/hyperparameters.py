"""Hyperparameters between modules and what a session writes down."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from gp_eval.models.protocol import Hyperparameters

__all__ = ["read_hyperparameters", "restore_hyperparameters", "trainable"]


def trainable(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Raw parameters that require a gradient, by name."""
    return [(k, p) for k, p in module.named_parameters() if p.requires_grad]


def read_hyperparameters(parameters: Iterable[tuple[str, Tensor]]) -> Hyperparameters:
    """The present values."""
    return {name: p.detach().reshape(-1).tolist() for name, p in parameters}


def restore_hyperparameters(
    parameters: Iterable[tuple[str, Tensor]], known: Hyperparameters
) -> None:
    """Set values that were read before."""
    with torch.no_grad():
        for name, parameter in parameters:
            parameter.copy_(parameter.new_tensor(known[name]).view_as(parameter))
