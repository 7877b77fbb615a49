"""Tasks of Inspect with their samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gp_eval.errors import DriverError

__all__ = ["load"]


def load(tasks: Any, arguments: Mapping[str, Any]) -> list[Any]:
    """Task objects, every sample with an id.

    Args:
        tasks: What ``inspect_ai.eval`` takes: names, tasks, or a list of them.
        arguments: Arguments of named tasks.

    Raises:
        DriverError: If there is none.
    """
    from inspect_ai import Task

    given = list(tasks) if isinstance(tasks, list | tuple) else [tasks]
    loaded: list[Any] = []
    for task in given:
        if isinstance(task, Task):
            loaded.append(task)
        elif isinstance(task, str):
            loaded += _by_name(task, arguments)
        elif callable(task):
            loaded.append(task(**arguments))
        else:
            raise DriverError(f"inspect: expected a task, got {task!r}")
    if not loaded:
        raise DriverError(f"inspect: no task found for {given}")
    for task in loaded:
        _number(task.dataset)
    return loaded


def _by_name(name: str, arguments: Mapping[str, Any]) -> list[Any]:
    # The module is private: there is no other way from a name to a task.
    from inspect_ai._eval.loader import load_tasks

    return list(load_tasks([name], dict(arguments)))


def _number(samples: Sequence[Any]) -> None:
    """Ids where there are none, as Inspect itself gives them."""
    if all(sample.id is None for sample in samples):
        for number, sample in enumerate(samples, start=1):
            sample.id = number
