"""Folders of sessions of several targets: made, opened, damaged, resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from multi_target_sessions import (
    TARGETS,
    create,
    evaluate,
    resume,
)
from sessions import (
    Ask,
    Tell,
    contents,
    journal,
    unique_references,
)

from gp_eval import MultiTargetSession
from gp_eval.errors import DataError, StateMismatchError
from gp_eval.session.journal import Journal


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a session that is made by the test."""
    return tmp_path / "run"


@pytest.fixture
def started(run: Path) -> Path:
    """A closed session past an update, with three pairs pending."""
    with create(run) as session:
        evaluate(session, 13)
        session.ask(3)
    return run


# Making a session


@pytest.mark.parametrize(
    ("targets", "complaint"),
    [
        ([], "targets: expected at least one name"),
        ("abc", "targets: expected at least one name, got 'abc'"),
        (["a", ""], "targets: expected a name that is not empty, got ''"),
        (["a", 3], "targets: expected a name that is not empty, got 3"),
        (["a", "b", "a"], "targets: expected unique names, repeated: 'a'$"),
        (["a", "m3"], r"targets: 'm3' is one of the reference models.*without"),
    ],
)
def test_targets_that_cannot_be_used_are_refused_and_no_folder_made(
    run: Path, targets: Any, complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        create(run, targets=targets)
    assert not run.exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            {"model": "bayesame"},
            "'bayesame' is of one target: use 'bayesame-multi' .*one",
        ),
        ({"model": "nope"}, "model: expected one of .*bayesame"),
        ({"model_options": {"speed": 3}}, r"unknown options \['speed'\]"),
        ({"model_options": {"n_targets": 3}}, "'n_targets' follows from the targets"),
        (
            {"model_options": {"initial_items": float("inf")}},
            "'initial_items': not JSON",
        ),
        ({"seed": 2**70}, "seed"),
    ],
)
def test_options_that_cannot_be_used_are_refused_and_no_folder_made(
    run: Path, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        create(run, **options)
    assert not run.exists()


def test_one_target_is_enough(run: Path) -> None:
    with create(run, targets=("only",)) as session:
        asked = session.ask(50)
        assert {target for target, _ in asked} == {"only"}
        session.tell_all(dict.fromkeys(asked, 0.5))
        (result,) = session.estimates()
        assert result.n == 3
    assert resume(run) == [result]


def test_the_settings_are_readable_and_name_the_targets(run: Path) -> None:
    create(run, seed=3, model_options={"refit_every": 7}).close()
    settings = json.loads((run / "session.json").read_text())
    assert settings["format"] == 1
    assert settings["targets"] == TARGETS
    assert "target" not in settings
    assert settings["model"] == "shared-mean"
    assert settings["model_options"] == {"refit_every": 7}
    assert settings["seed"] == 3
    assert settings["references"] == unique_references().fingerprint


def test_creating_over_a_session_is_refused_and_leaves_it(started: Path) -> None:
    before = contents(started)
    with pytest.raises(StateMismatchError, match="holds a session already"):
        create(started)
    assert contents(started) == before


def test_a_create_that_was_killed_can_be_repeated(run: Path) -> None:
    create(run).close()
    (run / "session.json").unlink()
    with pytest.raises(StateMismatchError, match=r"has no session\.json"):
        MultiTargetSession.open(run)
    with create(run) as session:
        assert len(session.ask()) == 1


# Opening a session


def test_opening_with_other_references_is_refused_with_the_difference(
    started: Path,
) -> None:
    with MultiTargetSession.open(started, references=unique_references()) as session:
        assert len(session.pending) == 3
    before = contents(started)
    with pytest.raises(StateMismatchError, match="other items .*lack 'q23'") as error:
        MultiTargetSession.open(started, references=unique_references(23))
    assert contents(started) == before
    MultiTargetSession.open(started).close()
    # Until here the traceback kept the lock from being freed by garbage collection.
    assert error.tb is not None


def refused(folder: Path, complaint: str) -> None:
    """Both ways of opening raise, and leave every byte and the lock."""
    before = contents(folder)
    for read_only in (True, False):
        with pytest.raises(StateMismatchError, match=complaint) as error:
            MultiTargetSession.open(folder, read_only=read_only)
        assert error.value.exit_code == 4
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", 2),
        ("targets", []),
        ("targets", "a"),
        ("targets", ["a", 3]),
        ("target", "a"),
        ("covar_module", None),
        ("model", 3),
        ("stop", {"width": -1.0}),
        ("surprise", 1),
    ],
)
def test_damaged_settings_are_an_error_that_names_the_field(
    started: Path, field: str, value: Any
) -> None:
    path = started / "session.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    refused(started, rf"session\.json' is damaged: {field}")


@pytest.mark.parametrize("field", ["targets", "stop", "items"])
def test_settings_that_lack_a_field_are_an_error_that_names_it(
    started: Path, field: str
) -> None:
    path = started / "session.json"
    settings = json.loads(path.read_text())
    del settings[field]
    path.write_text(json.dumps(settings))
    refused(started, rf"session\.json' is damaged: {field}: .*required")


def test_another_number_of_targets_is_an_error_of_the_journal(started: Path) -> None:
    path = started / "session.json"
    settings = json.loads(path.read_text()) | {"targets": TARGETS[:2]}
    path.write_text(json.dumps(settings))
    refused(started, "journal names 'naïve', which this session does not have")


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (Tell(item="q1", score=0.5), "does not fit: an event names no target"),
        (Ask(items=["q1"]), "does not fit: an event names no target"),
        (Tell(item="q1", target="x", score=0.5), "names 'x', which this session"),
        (Tell(item="x", target="a", score=0.5), "names 'x', which this session"),
        (Ask(items=["q1"], targets=["x"]), "names 'x', which this session"),
    ],
)
def test_events_of_another_session_are_an_error(
    run: Path, event: Ask | Tell, complaint: str
) -> None:
    create(run).close()
    Journal(journal(run)).append([event])
    refused(run, complaint)


def test_an_ask_event_of_other_numbers_of_targets_and_items_is_damage(
    run: Path,
) -> None:
    create(run).close()
    wrong = Ask.model_construct(event="ask", time="", items=["q1"], targets=["a", "a"])
    Journal(journal(run)).append([wrong])
    refused(run, r"line 1: the line is damaged \([\s\S]*as many targets as items")


@pytest.mark.parametrize("position", [0, 10, -1])
def test_a_garbage_line_in_the_journal_is_an_error(
    started: Path, position: int
) -> None:
    lines = journal(started).read_bytes().splitlines(keepends=True)
    lines.insert(position, b"garbage\n")
    journal(started).write_bytes(b"".join(lines))
    refused(started, f"line {lines.index(b'garbage' + bytes([10])) + 1}: ")


def test_a_changed_target_of_a_score_is_an_error(started: Path) -> None:
    content = journal(started).read_bytes()
    lines = content.splitlines(keepends=True)
    number = next(k for k, l in enumerate(lines) if b'"target":"a"' in l)
    lines[number] = lines[number].replace(b'"target":"a"', b'"target":"b c"')
    journal(started).write_bytes(b"".join(lines))
    refused(started, rf"line {number + 1}: the line is damaged \(its checksum")
