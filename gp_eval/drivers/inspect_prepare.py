"""What Inspect would evaluate, taken from its own command line.

Inspect parses its flags and calls ``eval``; it is stopped there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from gp_eval.errors import DriverError

__all__ = ["SUBSETS", "check_options", "options_of"]

SUBSETS = ("limit", "sample_id", "sample_shuffle")


class _Stopped(BaseException):
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options


def options_of(flags: Sequence[str]) -> dict[str, Any]:
    """Arguments of ``inspect_ai.eval``, by name.

    Raises:
        DriverError: For flags that Inspect refuses.
    """
    from inspect_ai._cli.eval import eval_command

    with _stopping_at_eval():
        try:
            eval_command.main(args=list(flags), standalone_mode=False)
        except _Stopped as stopped:
            return stopped.options
        except Exception as error:  # those of click, and of Inspect's own checks
            text = getattr(error, "message", None) or str(error)
            raise DriverError(f"inspect: {text}") from error
    raise DriverError(f"inspect evaluates nothing with the flags {' '.join(flags)}")


def check_options(options: dict[str, Any]) -> None:
    """Raise ``DriverError`` for options that choose samples or leave out scores."""
    for name in SUBSETS:
        if options.get(name) is not None:
            raise DriverError(
                f"inspect: {name} cannot be given: the session chooses the samples"
            )
    if options.get("score") is False:
        raise DriverError("inspect: without scoring there are no scores")


@contextlib.contextmanager
def _stopping_at_eval() -> Iterator[None]:
    import inspect_ai._cli.eval

    module: Any = inspect_ai._cli.eval
    original = module.eval

    def stop(**options: Any) -> None:
        raise _Stopped(options)

    module.eval = stop
    try:
        yield
    finally:
        module.eval = original
