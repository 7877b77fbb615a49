"""A session of several targets that is killed at any moment goes on as if not."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killing import MORTAL, boundaries, copy_with_journal, start, told_by
from multi_target_sessions import create, finish, resume, tell
from sessions import Tell, Update, events_of, journal, unique_references

from gp_eval import MultiTargetSession, Result

N_ITEMS = 16

CHILD = (
    MORTAL
    + """
import json

from multi_target_sessions import create, score_for
from sessions import unique_references

from gp_eval import MultiTargetSession

print("ready", flush=True)
if (folder / "session.json").exists():
    session = MultiTargetSession.open(folder)
else:
    session = create(folder, references=unique_references(n_items))


def tell(pairs):
    for target, item in pairs:
        session.tell(target, item, score_for(target, item))
        print("told", json.dumps([target, item]), flush=True)


tell(session.pending)
while not session.done:
    tell(session.ask(3))
time.sleep(120)  # to be killed
"""
)


@dataclass(frozen=True)
class Whole:
    """A run that nothing interrupted, and its batch size."""

    q: int
    folder: Path
    results: list[Result]


SMALL = {"model": "shared-mean", "references": unique_references(N_ITEMS)}
REAL = {
    "model": "bayesame-multi",
    "references": unique_references(8),
    "model_options": {"refit_every": 3, "steps": 4, "initial": 0.25},
}
AVERAGE = REAL | {
    "model_options": {"refit_every": 3, "steps": 2, "selection": "average"}
}


@pytest.fixture(
    scope="module",
    params=[(SMALL, 1), (SMALL, 4), (REAL, 1), (REAL, 4), (AVERAGE, 1)],
    ids=["small", "small by fours", "real", "real by fours", "average"],
)
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Whole:
    options, q = request.param
    folder = tmp_path_factory.mktemp("whole") / "run"
    with create(folder, **options) as session:
        return Whole(q, folder, finish(session, q=q))


def test_the_run_has_updates_to_be_cut_at(whole: Whole) -> None:
    assert {result.stop_reason for result in whole.results} == {"complete"}
    assert sum(isinstance(e, Update) for e in events_of(whole.folder)) >= 2


@pytest.mark.parametrize("part", range(4))
def test_a_run_cut_after_any_event_goes_on_to_the_same_end(
    tmp_path: Path, whole: Whole, part: int
) -> None:
    q, folder, expected = whole.q, whole.folder, whole.results
    content = journal(folder).read_bytes()
    for length in boundaries(content)[part::4]:
        run = copy_with_journal(folder, tmp_path / str(length), content[:length])
        with MultiTargetSession.open(run) as session:
            results = finish(session, q=q)
        # Dataclass equality: items in order, estimates and widths to the last bit.
        assert results == expected, f"cut after {length} bytes"
        assert resume(run) == expected


def test_a_run_cut_again_and_again_goes_on_to_the_same_end(
    tmp_path: Path, whole: Whole
) -> None:
    q, folder, expected = whole.q, whole.folder, whole.results
    run = copy_with_journal(folder, tmp_path / "run", b"")
    generator = np.random.default_rng(q)
    for _ in range(25):
        with MultiTargetSession.open(run) as session:
            tell(session, session.pending)
            tell(session, session.ask(q))
        content = journal(run).read_bytes()
        lost = int(generator.integers(0, 150))
        journal(run).write_bytes(content[: max(0, len(content) - lost)])
    with MultiTargetSession.open(run) as session:
        assert finish(session, q=q) == expected


def test_a_process_killed_at_many_moments_ends_as_one_that_was_not(
    tmp_path: Path,
) -> None:
    with create(tmp_path / "whole", references=unique_references(N_ITEMS)) as session:
        expected = finish(session, q=3)
    run = tmp_path / "run"
    told: list[str] = []
    # The syncs of `create` come first: of the folder, then of the references.
    for death, number in (("before", 2), ("before", 9), ("torn", 11), ("after", 12)):
        process = start(CHILD, run, N_ITEMS, death, number)
        told += told_by(process)
        assert process.returncode == -signal.SIGKILL
        if (run / "session.json").exists():
            assert_all_on_disk(run, told)
    assert 10 < len(told) < 3 * N_ITEMS
    process = start(CHILD, run, N_ITEMS, "by us", 0)
    assert process.stdout is not None
    for _ in range(4):
        line = process.stdout.readline()
        told += [line.removeprefix("told ")] if line.startswith("told ") else []
    time.sleep(float(np.random.default_rng(0).uniform(0.0, 0.005)))
    process.kill()
    told += told_by(process)
    assert process.returncode == -signal.SIGKILL
    assert_all_on_disk(run, told)
    with MultiTargetSession.open(run) as session:
        assert finish(session, q=3) == expected
    assert resume(run) == expected


def assert_all_on_disk(run: Path, told: list[str]) -> None:
    """Whatever a tell returned for is in the journal, once."""
    written = [(e.target, e.item) for e in events_of(run) if isinstance(e, Tell)]
    assert len(written) == len(set(written))
    pairs: list[Any] = [json.loads(pair) for pair in told]
    assert {tuple(pair) for pair in pairs} <= set(written)
