"""What the tests of drivers share: a driver in memory, a script, children that die."""

from __future__ import annotations

import os
import shlex
import signal
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sessions import score_of, unique_references

from gp_eval import Session, StoppingRule
from gp_eval.drivers import Batch, CommandDriver, Outcome
from gp_eval.drivers.rounds import Rounds

__all__ = ["FakeDriver", "create", "in_a_child", "script", "told_in"]

BUDGET = StoppingRule(width=1e-9, stable=1e-9, max_items=12)


def create(path: Path, **options: Any) -> Session:
    """A session of 24 items with a budget of 12 and updates every 5."""
    usual = {"target": "new", "stop": BUDGET, "model_options": {"refit_every": 5}}
    return Session.create(path, unique_references(), **usual | options)


class FakeDriver:
    """Scores items in memory; ``fails`` says how often an item fails first."""

    name = "fake"

    def __init__(self, fails: Mapping[str, int] | None = None, **settings: Any) -> None:
        self.settings = settings
        self.fails = dict(fails or {})
        self.calls: list[list[str]] = []
        self.left: dict[str, float] = {}

    def check(self, session: Any) -> list[str]:
        return []

    def run(self, rounds: Rounds) -> None:
        while (batch := rounds.next()) is not None:
            rounds.take(self.evaluate(batch))

    def evaluate(self, batch: Batch) -> Outcome:
        self.calls.append([item for _, item in batch.pairs])
        outcome = Outcome()
        for pair in reversed(batch.pairs):  # any order
            item = pair[1]
            if self.fails.get(item, 0) > 0:
                self.fails[item] -= 1
                outcome.failures[pair] = f"no {item}"
            else:
                outcome.scores[pair] = score_of(item)
        return outcome

    def recover(self, folder: Path, target: str, items: Sequence[str]) -> Outcome:
        return Outcome({(target, i): self.left[i] for i in items if i in self.left})


def script(folder: Path, body: str) -> CommandDriver:
    """A driver of a shell script that is given items and scores as $1 and $2.

    It may look up scores in $TABLE and append to $CALLS.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = "".join(f"q{i}={score_of(f'q{i}')}\n" for i in range(24))
    (folder / "table").write_text(table)
    path = folder / "score.sh"
    places = {"TABLE": folder / "table", "CALLS": folder / "calls", "HERE": folder}
    lines = [f"{name}={shlex.quote(str(place))}" for name, place in places.items()]
    path.write_text("\n".join(["#!/bin/sh", *lines, body, ""]))
    path.chmod(0o755)
    return CommandDriver([str(path), "{items}", "{scores}"])


def in_a_child(work: Callable[[], object]) -> int:
    """The signal that ended ``work`` in a forked process, 0 for none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and forks
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def dying_at(number: int, death: str) -> None:
    """Kill this process at its file sync of that number, before or after it."""
    fsync, count = os.fsync, 0

    def mortal(descriptor: int) -> None:
        nonlocal count
        count += 1
        if count == number and death == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(descriptor)
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = mortal


def told_in(path: Path) -> list[str]:
    """Items with a score on disk, in the order of telling."""
    with Session.open(path, read_only=True) as session:
        return session.estimate().items
