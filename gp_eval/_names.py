"""Naming a few of many ids in a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["some"]


def some(names: Sequence[Any], limit: int = 5) -> str:
    """The first few names, and how many there are beyond them."""
    shown = ", ".join(repr(str(name)) for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
