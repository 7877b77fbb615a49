"""Printing: data to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["note", "print_json", "print_table", "progress_console"]


def print_json(record: dict[str, Any]) -> None:
    """One JSON object on a line of its own."""
    print(json.dumps(record, allow_nan=False), flush=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; all columns but the first hold numbers."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console = Console(file=sys.stdout)
    # A pipe has no width: do not fold the columns of a script's input.
    console.print(table, width=None if console.is_terminal else 200)


def progress_console() -> Console:
    """Where progress bars go."""
    return Console(stderr=True)


def note(text: str) -> None:
    """A line for the person, not for the script."""
    print(text, file=sys.stderr, flush=True)
