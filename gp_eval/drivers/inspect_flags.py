"""Flags of Inspect: which of them matter for scores, and what the model is called."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from gp_eval.drivers.settings import flags_of

__all__ = ["model_name", "settings_of"]

_HARMLESS = (
    *("--display", "--no-ansi", "--log-level", "--log-level-transcript", "--log-dir"),
    *("--log-format", "--log-buffer", "--log-shared", "--log-images", "--trace"),
    *("--max-samples", "--max-tasks", "--max-connections", "--max-subprocesses"),
    *("--max-sandboxes", "--max-retries", "--timeout", "--fail-on-error"),
    *("--no-fail-on-error", "--retry-on-error", "--cache", "--tags", "--metadata"),
)


def settings_of(
    flags: Sequence[str], options: Mapping[str, Any], *, metric: str | None
) -> dict[str, Any]:
    """What must stay the same within a session."""
    named = {"model": str(options["model"])} if "model" in options else {}
    return {**flags_of(flags, harmless=_HARMLESS), **named, "metric": metric}


def model_name(flags: Sequence[str]) -> str | None:
    """The model, if flags or environment tell."""
    words = flags_of(flags).get("--model")
    return words[-1] if words else os.environ.get("INSPECT_EVAL_MODEL")
