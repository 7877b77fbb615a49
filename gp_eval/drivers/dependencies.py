"""Tools are extras: asked for by name, imported when used."""

from __future__ import annotations

import importlib.util

from gp_eval.errors import MissingDependencyError

__all__ = ["require"]


def require(module: str, *, extra: str) -> None:
    """Raise ``MissingDependencyError`` with what to install if it is not there."""
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(
            f"{module} is not installed: pip install 'gp-eval[{extra}]'"
        )
