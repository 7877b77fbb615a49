"""A session that is killed at any moment goes on as if nothing had happened."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import pytest
from killing import MORTAL, boundaries, copy_with_journal, start, told_by
from sessions import (
    Ask,
    Tell,
    Update,
    create,
    events_of,
    finish,
    journal,
    resume,
    score_of,
    unique_references,
)

from gp_eval import Result, Session
from gp_eval.errors import SessionLockedError, StateMismatchError

N_ITEMS = 60

CHILD = (
    MORTAL
    + """
from sessions import create, score_of, unique_references

from gp_eval import Session

print("ready", flush=True)
if (folder / "session.json").exists():
    session = Session.open(folder)
else:
    session = create(folder, unique_references(n_items))


def tell(item: str) -> None:
    session.tell(item, score_of(item))
    print("told", item, flush=True)


for item in session.pending:
    tell(item)
while not session.done:
    for item in session.ask(3):
        tell(item)
time.sleep(120)  # to be killed
"""
)

HOLDER = '''
"""Tries to open one session, then holds another one until it is killed."""

import sys
import time

from gp_eval import Session
from gp_eval.errors import SessionLockedError

try:
    Session.open(sys.argv[1])
except SessionLockedError as error:
    print("locked", error.exit_code, flush=True)
session = Session.open(sys.argv[2])
print("holding", flush=True)
time.sleep(120)
'''


@pytest.fixture(scope="module", params=[1, 4], ids=["singly", "by fours"])
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, Path, Result]:
    """Batch size, folder and result of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with create(folder, unique_references(N_ITEMS)) as session:
        result = finish(session, q=request.param)
    return request.param, folder, result


def test_the_run_has_asks_tells_and_updates_to_be_cut_at(
    whole: tuple[int, Path, Result],
) -> None:
    q, folder, result = whole
    events = events_of(folder)
    assert result.n == N_ITEMS
    assert sum(isinstance(e, Ask) for e in events) == N_ITEMS / q
    assert sum(isinstance(e, Tell) for e in events) == N_ITEMS
    fitted = [e.n for e in events if isinstance(e, Update)]
    assert fitted == [7, 14, 21, 28, 35, 42, 49, 56]


@pytest.mark.parametrize("part", range(4))
def test_a_run_cut_after_any_event_goes_on_to_the_same_end(
    tmp_path: Path, whole: tuple[int, Path, Result], part: int
) -> None:
    q, folder, expected = whole
    content = journal(folder).read_bytes()
    for length in boundaries(content)[part::4]:
        run = copy_with_journal(folder, tmp_path / str(length), content[:length])
        with Session.open(run) as session:
            result = finish(session, q=q)
        # Dataclass equality: items in order, estimates and widths to the last bit.
        assert result == expected, f"cut after {length} bytes"
        assert resume(run) == expected


def test_a_run_cut_at_any_byte_resumes_where_its_last_whole_line_ends(
    tmp_path: Path, whole: tuple[int, Path, Result]
) -> None:
    q, folder, expected = whole
    content = journal(folder).read_bytes()
    ends = boundaries(content)
    generator = np.random.default_rng(q)
    for length in generator.integers(1, len(content), size=15).tolist():
        end = max(e for e in ends if e <= length)
        at_end = copy_with_journal(folder, tmp_path / "at_end", content[:end])
        torn = copy_with_journal(folder, tmp_path / "torn", content[:length])
        clean = Session.open(at_end, read_only=True)
        with Session.open(torn) as session:
            assert session.estimate() == clean.estimate()
            assert session.pending == clean.pending
            assert finish(session, q=q) == expected


def test_a_run_cut_again_and_again_goes_on_to_the_same_end(
    tmp_path: Path, whole: tuple[int, Path, Result]
) -> None:
    q, folder, expected = whole
    run = copy_with_journal(folder, tmp_path / "run", b"")
    generator = np.random.default_rng(q)
    for _ in range(25):
        with Session.open(run) as session:
            for item in session.pending:
                session.tell(item, score_of(item))
            for item in session.ask(q):
                session.tell(item, score_of(item))
        content = journal(run).read_bytes()
        lost = int(generator.integers(0, 150))
        journal(run).write_bytes(content[: max(0, len(content) - lost)])
    with Session.open(run) as session:
        assert finish(session, q=q) == expected


@pytest.mark.parametrize(
    "left", [[], ["events.jsonl"], ["events.jsonl", "references.npz"]]
)
def test_a_create_that_was_killed_can_be_repeated(
    tmp_path: Path, left: list[str]
) -> None:
    run, references = tmp_path / "run", unique_references()
    create(run, references).close()
    for path in run.iterdir():
        if path.name not in left:
            path.unlink()
    (run / ".session.json.x7f3").write_bytes(b'{"format"')
    with pytest.raises(StateMismatchError, match=r"has no session\.json"):
        Session.open(run)
    with create(run, references) as session:
        result = finish(session)
    with create(run.with_name("2"), references) as session:
        assert finish(session) == result


def test_a_process_killed_at_many_moments_ends_as_one_that_was_not(
    tmp_path: Path,
) -> None:
    with create(tmp_path / "whole", unique_references(N_ITEMS)) as session:
        expected = finish(session, q=3)
    run = tmp_path / "run"
    told: list[str] = []
    # The syncs of `create` come first: of the folder, then of the references.
    for death, number in (
        ("before", 2),
        ("before", 9),
        ("torn", 11),
        ("after", 12),
    ):
        process = start(CHILD, run, N_ITEMS, death, number)
        told += told_by(process)
        assert process.returncode == -signal.SIGKILL
        if (run / "session.json").exists():
            assert_all_on_disk(run, told)
    assert 10 < len(told) < N_ITEMS
    generator = np.random.default_rng(0)
    for lines in (1, 5):
        process = start(CHILD, run, N_ITEMS, "by us", 0)
        assert process.stdout is not None
        for _ in range(lines + 1):
            line = process.stdout.readline().split()
            told += line[1:]
        time.sleep(float(generator.uniform(0.0, 0.005)))
        process.kill()
        told += told_by(process)
        assert process.returncode == -signal.SIGKILL
        assert_all_on_disk(run, told)
    with Session.open(run) as session:
        assert finish(session, q=3) == expected
    assert resume(run) == expected


def assert_all_on_disk(run: Path, told: list[str]) -> None:
    """Whatever a tell returned for is in the journal, once."""
    written = [e.item for e in events_of(run) if isinstance(e, Tell)]
    assert len(written) == len(set(written))
    assert set(told) <= set(written)


def test_a_lock_holds_between_processes_and_ends_with_its_process(
    tmp_path: Path,
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    create(theirs).close()
    with create(ours):
        process = start(HOLDER, ours, theirs)
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "locked 1\n"
            assert process.stdout.readline() == "holding\n"
            with pytest.raises(SessionLockedError, match="another process"):
                Session.open(theirs)
            assert Session.open(theirs, read_only=True).estimate().n == 0
        finally:
            process.kill()
            process.wait(timeout=60)
            process.stdout.close()
    with Session.open(theirs) as session:
        assert len(session.ask()) == 1
