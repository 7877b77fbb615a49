"""The journal: exact, durable, and never wrong in silence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from sessions import Event

from gp_eval.errors import StateMismatchError
from gp_eval.session.journal import Ask, Journal, Tell, Update

ODD = ["q1", 'a "quoted" one', "new\nline", "naïve µ 🙂", "", "back\\slash", "\u2028"]
NUMBERS = [0.1 + 0.2, 5e-324, -1.7976931348623157e308, 1 / 3, 0.0, 1.0, 123456789.0]


def some_events() -> list[Event]:
    events: list[Event] = [Ask(items=ODD)]
    events += [Tell(item=i, score=s) for i, s in zip(ODD, NUMBERS, strict=True)]
    events.append(Update(n=7, hyperparameters={"raw_alpha": NUMBERS, "raw": []}))
    return events


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = Journal(tmp_path / "events.jsonl")
    journal.create()
    return journal


@pytest.fixture
def full(journal: Journal) -> Journal:
    journal.append(some_events())
    return journal


def test_a_new_journal_is_an_empty_file(journal: Journal) -> None:
    assert journal.path.read_bytes() == b""
    assert journal.read(repair=False) == []


def test_events_are_read_as_they_were_written_to_the_last_bit(full: Journal) -> None:
    events = full.read(repair=False)
    assert events == some_events_with_times_of(events)
    update = events[-1]
    assert isinstance(update, Update)
    assert [x.hex() for x in update.hyperparameters["raw_alpha"]] == [
        x.hex() for x in NUMBERS
    ]


def some_events_with_times_of(events: list[Event]) -> list[Event]:
    return [
        expected.model_copy(update={"time": event.time})
        for expected, event in zip(some_events(), events, strict=True)
    ]


def test_events_have_the_time_in_utc(full: Journal) -> None:
    for event in full.read(repair=False):
        assert event.time.endswith("+00:00")


def test_every_line_is_one_json_object(full: Journal) -> None:
    lines = full.path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    records = [json.loads(line) for line in lines]
    assert [r["event"] for r in records] == ["ask", *["tell"] * len(ODD), "update"]
    assert records[0]["items"] == ODD


def test_appending_keeps_what_is_there(full: Journal) -> None:
    before = full.path.read_bytes()
    full.append([Tell(item="q2", score=0.5)])
    assert full.path.read_bytes().startswith(before)
    assert len(full.read(repair=False)) == len(some_events()) + 1


def test_appending_nothing_writes_nothing(full: Journal) -> None:
    before = full.path.read_bytes()
    full.append([])
    assert full.path.read_bytes() == before


def test_what_is_appended_is_in_the_file_when_it_is_synced(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, int]] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append((status.st_ino, status.st_size))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    for k in range(3):
        journal.append([Tell(item=f"q{k}", score=0.5)])
        status = journal.path.stat()
        assert synced.pop() == (status.st_ino, status.st_size)
        assert status.st_size > 0
    assert synced == []


def test_scores_that_are_no_finite_numbers_never_reach_the_file(
    full: Journal,
) -> None:
    before = full.path.read_bytes()
    for score in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite number"):
            full.append([Tell(item="q", score=score)])
        wrong = Tell.model_construct(event="tell", time="", item="q", score=score)
        with pytest.raises(ValueError, match="JSON"):
            full.append([wrong])
    assert full.path.read_bytes() == before


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_append_that_fails_leaves_no_event_behind(
    full: Journal, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    before = full.path.read_bytes()

    def fail(_: int) -> None:
        raise error("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(error, match="no space left"):
            full.append([Tell(item="late", score=0.5)])
    assert full.path.read_bytes() == before
    full.append([Tell(item="later", score=0.25)])
    assert len(full.read(repair=False)) == len(some_events()) + 1


def test_creating_over_events_is_refused_and_leaves_them(full: Journal) -> None:
    before = full.path.read_bytes()
    with pytest.raises(StateMismatchError, match=r"session\.json is gone"):
        full.create()
    assert full.path.read_bytes() == before


def test_creating_over_an_empty_journal_is_fine(journal: Journal) -> None:
    journal.create()
    assert journal.read(repair=True) == []


def test_a_missing_journal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateMismatchError, match=r"events\.jsonl' is missing"):
        Journal(tmp_path / "events.jsonl").read(repair=True)


# The end of the file


def test_a_file_cut_at_any_byte_holds_the_lines_that_are_complete(
    full: Journal,
) -> None:
    content, events = full.path.read_bytes(), full.read(repair=False)
    for length in range(len(content) + 1):
        full.path.write_bytes(content[:length])
        complete = content[:length].count(b"\n")
        assert full.read(repair=False) == events[:complete]
        assert full.path.read_bytes() == content[:length]


def test_repairing_cuts_the_unfinished_line_off_so_that_appending_is_safe(
    full: Journal,
) -> None:
    content = full.path.read_bytes()
    start = content[:-1].rindex(b"\n") + 1
    for length in range(start + 1, len(content)):
        full.path.write_bytes(content[:length])
        events = full.read(repair=True)
        assert len(events) == len(some_events()) - 1
        assert full.path.read_bytes() == content[:start]
        full.append([Tell(item="next", score=1.0)])
        assert full.read(repair=True)[:-1] == events


def test_repairing_a_whole_file_changes_nothing(full: Journal) -> None:
    content = full.path.read_bytes()
    full.read(repair=True)
    assert full.path.read_bytes() == content


@pytest.mark.parametrize("tail", [b"\0" * 64, b"{", b'{"event":"tell"', b"\xff"])
def test_an_end_without_a_newline_is_dropped_whatever_it_holds(
    full: Journal, tail: bytes
) -> None:
    content, events = full.path.read_bytes(), full.read(repair=False)
    full.path.write_bytes(content + tail)
    assert full.read(repair=False) == events
    assert full.read(repair=True) == events
    assert full.path.read_bytes() == content


# Damage


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x41, 0xFF])
def test_a_change_of_any_byte_of_any_complete_line_is_an_error_with_its_line(
    full: Journal, mask: int
) -> None:
    content = full.path.read_bytes()
    for k in range(len(content) - 1):
        damaged = content[:k] + bytes([content[k] ^ mask]) + content[k + 1 :]
        full.path.write_bytes(damaged)
        line = content[:k].count(b"\n") + 1
        with pytest.raises(StateMismatchError, match=f"line {line}: "):
            full.read(repair=True)
        assert full.path.read_bytes() == damaged


def test_a_changed_digit_of_a_score_is_an_error(journal: Journal) -> None:
    journal.append([Tell(item=f"q{k}", score=0.25) for k in range(3)])
    lines = journal.path.read_bytes().splitlines(keepends=True)
    assert lines[1].count(b"0.25") == 1
    lines[1] = lines[1].replace(b"0.25", b"0.75")
    journal.path.write_bytes(b"".join(lines))
    with pytest.raises(StateMismatchError, match=r"line 2: the line is damaged \(.*"):
        journal.read(repair=True)


@pytest.mark.parametrize("garbage", [b"", b"garbage", b"{}", b"\0" * 40, b"\xff\xfe"])
@pytest.mark.parametrize("position", [0, 3, 9])
def test_a_foreign_line_is_an_error_even_at_the_end(
    full: Journal, garbage: bytes, position: int
) -> None:
    lines = full.path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 9
    lines.insert(position, garbage + b"\n")
    full.path.write_bytes(b"".join(lines))
    with pytest.raises(StateMismatchError, match=f"line {position + 1}: "):
        full.read(repair=True)


def test_the_error_tells_what_to_do(full: Journal) -> None:
    full.path.write_bytes(full.path.read_bytes() + b"garbage\n")
    with pytest.raises(StateMismatchError, match="Restore the file from a copy") as e:
        full.read(repair=True)
    assert e.value.exit_code == 4


def test_a_missing_repeated_or_swapped_line_is_damage(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal.create()
    journal.append([Tell(item=f"q{i}", score=0.5) for i in range(4)])
    a, b, c, d = journal.path.read_bytes().splitlines(keepends=True)
    for lines, number in (
        ([a, c, d], 2),
        ([b, c, d], 1),
        ([a, b, b, c, d], 3),
        ([a, c, b, d], 2),
    ):
        journal.path.write_bytes(b"".join(lines))
        with pytest.raises(StateMismatchError, match=f"line {number}"):
            Journal(journal.path).read(repair=False)


def test_appending_goes_on_from_what_was_read(tmp_path: Path) -> None:
    first = Journal(tmp_path / "events.jsonl")
    first.create()
    first.append([Tell(item="a", score=0.5)])
    second = Journal(first.path)
    second.read(repair=True)
    second.append([Tell(item="b", score=0.25)])
    events = Journal(first.path).read(repair=False)
    assert [event.item for event in events] == ["a", "b"]
