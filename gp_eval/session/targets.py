"""Which models fit which class of session."""

from __future__ import annotations

from gp_eval.models.registry import takes_targets

__all__ = ["check_takes_targets"]


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
