"""What the tests of commands with several targets share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import multi_target_sessions  # noqa: F401 (registers the model shared-mean)
from command import Outcome, gp_eval

__all__ = ["pairs", "settings", "start", "status", "told"]


def start(folder: Path, table: Path, *flags: object) -> Outcome:
    return gp_eval("start", folder, "--refs", table, *flags)


def settings(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "session.json").read_text())


def status(run: Path, *flags: str) -> tuple[Outcome, list[dict[str, Any]]]:
    outcome = gp_eval("status", run, "--json", *flags)
    return outcome, [json.loads(line) for line in outcome.out.splitlines()]


def pairs(run: Path, *flags: object) -> list[tuple[str, str]]:
    """What ``ask`` prints."""
    lines = gp_eval("ask", run, *flags).out.splitlines()
    return [(target, item) for target, item in (line.split("\t") for line in lines)]


def told(run: Path) -> dict[str, int]:
    return {record["target"]: record["n"] for record in status(run)[1]}
