"""Flags of lm-eval: which of them matter for scores, and what the model is called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gp_eval.drivers.settings import flags_of
from gp_eval.readers.lm_eval_run import model_of_args

__all__ = ["choosing_flags", "model_name", "settings_of", "task_names", "without_tasks"]

_MODEL_ARGS = ("--model_args", "-a")
_MODEL = ("--model", "-M")
_TASKS = ("--tasks", "-t")
_CHOOSING = ("--limit", "-L", "--samples", "-E", "--cache_requests")
_HARMLESS = (
    *("--batch_size", "-b", "--max_batch_size", "--device", "--verbosity", "-v"),
    *("--output_path", "-o", "--log_samples", "-s", "--use_cache", "-c"),
    *("--show_config", "--write_out", "-w", "--check_integrity"),
    *("--wandb_args", "--wandb_config_args", "--trackio_args", "--hf_hub_log_args"),
)


def settings_of(
    flags: Sequence[str], *, metric: str | None, filter: str | None
) -> dict[str, Any]:
    """What must stay the same within a session."""
    settings = flags_of([word for word in flags if word != "run"], harmless=_HARMLESS)
    return {**settings, "metric": metric, "filter": filter}


def task_names(flags: Sequence[str]) -> list[str]:
    """Tasks as they are given; a suite is one name."""
    words = [
        word
        for flag, own in flags_of(flags).items()
        if _is_one_of(flag, _TASKS)
        for word in own
    ]
    return [name for word in words for name in word.split(",") if name]


def without_tasks(flags: Sequence[str]) -> list[str]:
    """The flags without ``--tasks``, whose values lm-eval adds up over repeats."""
    kept: list[str] = []
    dropping = False
    for word in flags:
        if word.startswith("-"):
            dropping = _is_one_of(word.partition("=")[0], _TASKS)
        if not dropping:
            kept.append(word)
    return kept


def choosing_flags(flags: Sequence[str]) -> list[str]:
    """Flags that choose documents, or keep prompts of some for all."""
    return [flag for flag in flags_of(flags) if _is_one_of(flag, _CHOOSING)]


def _is_one_of(flag: str, names: Sequence[str]) -> bool:
    """Whether a flag is one of the names, or short for it as ``argparse`` allows."""
    short = flag.startswith("--") and len(flag) > 3
    return flag in names or (short and any(name.startswith(flag) for name in names))


def model_name(flags: Sequence[str]) -> str | None:
    """The model as lm-eval's results would call it, if the flags tell."""
    found = flags_of(flags)
    words = [word for flag in _MODEL_ARGS for word in found.get(flag, [])]
    arguments: Any = ",".join(words)
    if arguments.startswith("{"):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return None
    name = model_of_args(arguments) if arguments else ""
    if isinstance(arguments, str) and name == arguments and "=" in name:
        name = ""  # arguments that name no model
    models = [word for flag in _MODEL for word in found.get(flag, [])]
    return name or (models[-1] if models else None)
