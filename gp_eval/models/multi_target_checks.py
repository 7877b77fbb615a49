"""Checks of the options of BayesAME for several targets."""

from __future__ import annotations

from collections.abc import Sequence

from gpytorch.kernels import Kernel

__all__ = ["check_design", "check_training"]


def check_training(
    learning_rate: float | None, weight_decay: float, steps: int
) -> None:
    """Raise ``ValueError`` for settings that AdamW cannot train with."""
    if learning_rate is not None and not learning_rate > 0.0:
        raise ValueError(f"learning_rate: expected > 0, got {learning_rate}")
    if not weight_decay >= 0.0:
        raise ValueError(f"weight_decay: expected >= 0, got {weight_decay}")
    if steps < 1:
        raise ValueError(f"steps: expected at least 1, got {steps}")


def check_design(
    n_targets: int,
    selection: str,
    initial: float,
    refit_every: int | None,
    n_latents: int | None,
    latents: Sequence[Kernel] | None,
) -> None:
    """Raise ``ValueError`` for a number, share or choice that cannot be."""
    if n_targets < 1:
        raise ValueError(f"n_targets: expected at least 1, got {n_targets}")
    if selection not in ("round-robin", "average", "random"):
        raise ValueError(
            "selection: expected 'round-robin', 'average' or 'random', got "
            f"{selection!r}"
        )
    if not 0.0 <= initial <= 1.0:
        raise ValueError(f"initial: expected a share from 0 to 1, got {initial}")
    if refit_every is not None and refit_every < 1:
        raise ValueError(f"refit_every: expected >= 1 or None, got {refit_every}")
    if n_latents is not None and (n_latents < 1 or latents is not None):
        raise ValueError(
            f"n_latents: expected at least 1 and no latents beside it, got {n_latents}"
        )
