"""Which models fit which class of session."""

from __future__ import annotations

import inspect

from gp_eval.models.registry import model_factory, takes_targets

__all__ = ["check_takes_targets", "takes_seed"]


def check_takes_targets(model: str, *, several: bool) -> None:
    """Raise ``ValueError`` for a model that does not fit the class of session."""
    if takes_targets(model) == several:
        return
    raise ValueError(
        f"model: {model!r} is of one target: use 'bayesame-multi' for several, or one "
        "session each"
        if several
        else f"model: {model!r} is of several targets: use MultiTargetSession"
    )


def takes_seed(model: str) -> bool:
    """Whether the model of that name makes random choices of its own."""
    return "seed" in inspect.signature(model_factory(model)).parameters
