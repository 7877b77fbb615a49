"""What lm-eval would evaluate, taken from its own command line.

lm-eval parses its flags, makes the model, loads the tasks and sets seeds and shots;
then it calls ``evaluate``. It is stopped there: whatever its version does to the flags
is done, and tasks and model are those of the full run.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gp_eval.errors import DriverError

__all__ = ["Prepared", "prepare"]

_SUBSETS = ("limit", "samples", "cache_requests", "rewrite_requests_cache")


@dataclass(frozen=True)
class Prepared:
    """Arguments of lm-eval's ``evaluate``.

    Args:
        lm: The model.
        tasks: Task objects by name, in the order of the full run.
        arguments: All of them, by name.
    """

    lm: Any
    tasks: dict[str, Any]
    arguments: dict[str, Any]


class _Stopped(BaseException):
    """Not an ``Exception``, which lm-eval might catch."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments


def prepare(flags: Sequence[str]) -> Prepared:
    """Run lm-eval's command line up to the point where it would evaluate.

    Raises:
        DriverError: For flags that lm-eval refuses, or that choose items themselves.
    """
    from lm_eval.__main__ import cli_evaluate

    with _stopping_at_evaluate(), _command_line(flags):
        try:
            cli_evaluate()
        except _Stopped as stopped:
            return _checked(stopped.arguments)
        except SystemExit as error:
            raise DriverError(
                f"lm-eval refuses these flags (code {error.code}): {' '.join(flags)}"
            ) from error
        except (ValueError, TypeError, FileNotFoundError) as error:
            raise DriverError(f"lm-eval: {error}") from error
    raise DriverError(f"lm-eval evaluates nothing with the flags {' '.join(flags)}")


@contextlib.contextmanager
def _stopping_at_evaluate() -> Iterator[None]:
    from lm_eval import evaluator

    original = evaluator.evaluate
    signature = inspect.signature(original)

    def stop(*values: Any, **named: Any) -> None:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        raise _Stopped(dict(bound.arguments))

    evaluator.evaluate = stop
    try:
        yield
    finally:
        evaluator.evaluate = original


@contextlib.contextmanager
def _command_line(flags: Sequence[str]) -> Iterator[None]:
    before = sys.argv
    sys.argv = ["lm_eval", *flags]
    try:
        yield
    finally:
        sys.argv = before


def _checked(arguments: dict[str, Any]) -> Prepared:
    for name in _SUBSETS:
        if arguments.get(name):
            raise DriverError(
                f"lm-eval: --{name} cannot be given: the items are chosen by the "
                "session, and prompts are built once for all of them"
            )
    lm, loaded = arguments["lm"], arguments["task_dict"]
    if lm.world_size > 1:
        raise DriverError("lm-eval: several ranks are not supported; start one process")
    tasks = dict(loaded.get("tasks", loaded))
    # Versions before 0.4.12 nest tasks below their groups.
    while any(isinstance(task, dict) for task in tasks.values()):
        tasks = _flatter(tasks)
    tasks = {name: task for name, task in tasks.items() if task is not None}
    for name, task in tasks.items():
        _check_task(name, task, lm, arguments)
    return Prepared(lm=lm, tasks=tasks, arguments=arguments)


def _flatter(tasks: dict[Any, Any]) -> dict[Any, Any]:
    flat: dict[Any, Any] = {}
    for name, task in tasks.items():
        flat |= task if isinstance(task, dict) else {name: task}
    return flat


def _check_task(name: str, task: Any, lm: Any, arguments: dict[str, Any]) -> None:
    """What ``evaluate`` itself would refuse."""
    unsafe = getattr(task, "UNSAFE_CODE", False)
    if unsafe and not arguments.get("confirm_run_unsafe_code"):
        raise DriverError(
            f"lm-eval: task {name!r} runs code that the model writes: give "
            "--confirm_run_unsafe_code if that is safe here"
        )
    if getattr(task, "MULTIMODAL", False) and not getattr(lm, "MULTIMODAL", False):
        raise DriverError(f"lm-eval: task {name!r} needs a model that takes images")
    if "bypass" in getattr(task, "_metric_fn_list", {}):
        raise DriverError("lm-eval: --predict_only gives no scores")
