"""Printing: data to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

__all__ = [
    "note",
    "print_json",
    "print_table",
    "progress_console",
    "training_progress",
]


def print_json(record: dict[str, Any]) -> None:
    """One JSON object on a line of its own."""
    print(json.dumps(record, allow_nan=False), flush=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; all columns but the first hold numbers.

    Cells are printed as they are: a name in brackets is no markup.
    """
    table = Table(box=None, header_style="bold", pad_edge=False, collapse_padding=True)
    for i, column in enumerate(columns):
        if i == 0:
            table.add_column(Text(column), overflow="fold")
        else:
            table.add_column(Text(column), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    # A pipe has no width: do not fold the columns of a script's input.
    width = None if sys.stdout.isatty() else 200
    Console(file=sys.stdout, width=width, highlight=False).print(table)


def progress_console() -> Console:
    """Where progress bars go."""
    return Console(stderr=True)


@contextmanager
def training_progress() -> Iterator[Callable[[int, int], None]]:
    """What to call with a step and the number of steps: a bar from the first on."""
    with ExitStack() as stack:
        bars: list[Progress] = []

        def show(step: int, n_steps: int) -> None:
            if not bars:
                bar = Progress(console=progress_console(), transient=True)
                bars.append(stack.enter_context(bar))
                bar.add_task("Training")
            task = bars[0].task_ids[0]
            bars[0].update(task, completed=step, total=n_steps)

        yield show


def note(text: str) -> None:
    """A line for the person, not for the script."""
    print(text, file=sys.stderr, flush=True)
