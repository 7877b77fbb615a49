"""The command line, run in this process through its entry point."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from unittest import mock

from gp_eval.cli.app import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def gp_eval(*words: object) -> Outcome:
    """Exit code, stdout and stderr of ``gp-eval WORDS``."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["gp-eval", *(str(word) for word in words)]
    with (
        mock.patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    return Outcome(code, out.getvalue(), err.getvalue())
