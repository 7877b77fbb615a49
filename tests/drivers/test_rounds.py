"""From the session to a tool and back, with a tool in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from driving import FakeDriver, create, told_in
from multi_target_sessions import create as create_joint
from multi_target_sessions import score_for

from gp_eval import Session
from gp_eval.drivers import Batch, OnError, Outcome, drive
from gp_eval.errors import DriverError, StateMismatchError


def first_items(path: Path, n: int) -> list[str]:
    with create(path) as session:
        return session.ask(n)


# Without failures


@pytest.mark.parametrize("batch", [1, 5, 100])
def test_a_session_is_driven_to_its_stop(tmp_path: Path, batch: int) -> None:
    driver = FakeDriver()
    with create(tmp_path / "run") as session:
        drive(session, driver, batch=batch)
        assert session.estimate().stop_reason == "max_items"
        assert session.pending == []
    asked = [item for call in driver.calls for item in call]
    assert len(asked) == len(set(asked)) == 12
    assert max(map(len, driver.calls)) == min(batch, 12)
    assert told_in(tmp_path / "run") == asked  # in that order, whatever came first


def test_driving_again_does_nothing(tmp_path: Path) -> None:
    with create(tmp_path / "run") as session:
        drive(session, FakeDriver())
        again = FakeDriver()
        drive(session, again)
    assert again.calls == []


def test_pending_items_come_first_in_batches(tmp_path: Path) -> None:
    driver = FakeDriver()
    with create(tmp_path / "run") as session:
        pending = session.ask(5)
        drive(session, driver, batch=3)
    assert driver.calls[:2] == [pending[:3], pending[3:]]


def test_several_targets_are_told_by_pair(tmp_path: Path) -> None:
    class Joint(FakeDriver):
        def evaluate(self, batch: Batch) -> Outcome:
            return Outcome({pair: score_for(*pair) for pair in batch.pairs})

    with create_joint(tmp_path / "run") as session:
        drive(session, Joint(), batch=10)
        assert {r.stop_reason for r in session.estimates()} == {"complete"}


# Failures


def test_an_item_that_fails_twice_is_tried_a_third_time(tmp_path: Path) -> None:
    items = first_items(tmp_path / "look", 5)
    driver = FakeDriver({items[1]: 2, items[3]: 1})
    with create(tmp_path / "run") as session:
        drive(session, driver, batch=5)
        assert session.done
    assert driver.calls[:3] == [items, [items[1], items[3]], [items[1]]]
    assert told_in(tmp_path / "run")[:5] == items


def test_retry_stops_in_the_end_and_the_same_call_goes_on(tmp_path: Path) -> None:
    items = first_items(tmp_path / "look", 5)
    driver = FakeDriver({items[1]: 4})
    with create(tmp_path / "run") as session:
        with pytest.raises(DriverError, match=f"failed 3 times.*no {items[1]}"):
            drive(session, driver, batch=5)
        assert session.pending == [items[1]]  # the others are told
        drive(session, driver, batch=5)
        assert session.done


def test_a_skipped_item_stays_unobserved(tmp_path: Path) -> None:
    items = first_items(tmp_path / "look", 5)
    driver = FakeDriver({items[1]: 9})
    with create(tmp_path / "run") as session:
        drive(session, driver, batch=5, on_error="skip")
        assert session.skipped == {items[1]: f"no {items[1]}"}
        result = session.estimate()
        assert (result.n, result.stop_reason) == (12, "max_items")
        assert items[1] not in result.items
    assert driver.calls[0] == items
    assert items[1] not in driver.calls[1]


def test_skip_after_several_tries(tmp_path: Path) -> None:
    items = first_items(tmp_path / "look", 5)
    driver = FakeDriver({items[1]: 1, items[2]: 2})
    with create(tmp_path / "run") as session:
        drive(session, driver, batch=5, on_error=OnError("skip", tries=2))
        assert list(session.skipped) == [items[2]]


def test_a_failed_item_may_be_given_a_score(tmp_path: Path) -> None:
    items = first_items(tmp_path / "look", 5)
    with create(tmp_path / "run") as session:
        drive(session, FakeDriver({items[1]: 9}), batch=5, on_error="score:0.25")
        told = session._loop.scores[0]
        assert told[session.references.items.index(items[1])] == 0.25
    assert told_in(tmp_path / "run")[:5] == items


@pytest.mark.parametrize("policy", ["skip", "score:0"])
def test_a_tool_that_is_down_is_no_reason_to_skip_everything(
    tmp_path: Path, policy: str
) -> None:
    driver = FakeDriver({f"q{i}": 99 for i in range(24)})
    with create(tmp_path / "run") as session:
        with pytest.raises(DriverError, match="failed in a row.*the tool, not"):
            drive(session, driver, batch=8, on_error=policy)
        assert len(session.skipped) + session.estimate().n < 10
        assert session.pending


def test_an_item_the_tool_forgets_has_failed(tmp_path: Path) -> None:
    class Forgetful(FakeDriver):
        def evaluate(self, batch: Batch) -> Outcome:
            outcome = super().evaluate(batch)
            outcome.scores.pop(batch.pairs[0])
            return outcome

    with (
        create(tmp_path / "run") as session,
        pytest.raises(DriverError, match="no score came back"),
    ):
        drive(session, Forgetful(), batch=5)


@pytest.mark.parametrize("text", ["", "zero", "score", "score:", "score:x", "Skip"])
def test_policies_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="expected retry, skip or score:0"):
        OnError.parse(text)


# Interruptions


def test_scores_of_an_interrupted_batch_are_taken_up(tmp_path: Path) -> None:
    class Interrupted(FakeDriver):
        def evaluate(self, batch: Batch) -> Outcome:
            raise KeyboardInterrupt

    notes: list[Mapping[str, Any]] = []
    with create(tmp_path / "run") as session, pytest.raises(KeyboardInterrupt):
        drive(session, Interrupted(), batch=5)
    with Session.open(tmp_path / "run") as session:
        items = session.pending
        driver = FakeDriver()
        driver.left = {items[3]: 0.125}
        drive(session, driver, batch=5, report=lambda _, what: notes.append(what))
    assert driver.calls[0] == [item for item in items if item != items[3]]
    assert told_in(tmp_path / "run")[:5] == items
    assert {"text": "1 scores taken up that the last run had not told"} in notes


def test_a_batch_that_was_complete_is_told_without_the_tool(tmp_path: Path) -> None:
    with create(tmp_path / "run") as session:
        drive(session, FakeDriver(), batch=5)
    straight = told_in(tmp_path / "run")
    with create(tmp_path / "other") as session:
        items = session.ask(5)
        folder = tmp_path / "other" / "logs" / "00001"
        driver = FakeDriver()
        _leave(folder, driver, items)
        driver.left = dict.fromkeys(items, 0.5)
        drive(session, driver, batch=5)
    assert items == straight[:5]
    assert all(not set(items) & set(call) for call in driver.calls)


def _leave(folder: Path, driver: FakeDriver, items: list[str]) -> None:
    from gp_eval.drivers.attempts import Attempts
    from gp_eval.drivers.settings import digest

    attempts = Attempts(folder.parent, digest(driver.name, driver.settings))
    assert attempts.new([("new", item) for item in items]) == folder


def test_scores_of_other_settings_are_not_taken_up(tmp_path: Path) -> None:
    with create(tmp_path / "run") as session:
        items = session.ask(5)
        _leave(tmp_path / "run" / "logs" / "00001", FakeDriver(a=1), items)
        driver = FakeDriver(a=2)
        driver.left = dict.fromkeys(items, 0.5)
        drive(session, driver, batch=5)
    assert driver.calls[0] == items


def test_folders_before_the_last_batch_are_not_read(tmp_path: Path) -> None:
    with create(tmp_path / "run") as session:
        drive(session, FakeDriver(), batch=5)
        session.tell_all({})
    with create(tmp_path / "short", stop=None) as session:
        driver = FakeDriver()
        read: list[Path] = []

        def recover(folder: Path, target: str, items: object) -> Outcome:
            read.append(folder)
            return Outcome()

        _leave(tmp_path / "short" / "logs" / "00001", driver, ["q1"])
        session.tell("q1", 0.5)
        _leave(tmp_path / "short" / "logs" / "00002", driver, ["q2"])
        session.tell("q2", 0.5)
        items = session.ask(2)
        _leave(tmp_path / "short" / "logs" / "00003", driver, items)
        driver.recover = recover  # type: ignore[method-assign]
        drive(session, driver, batch=50)
    assert [folder.name for folder in read] == ["00003"]


# Settings


def test_other_settings_are_refused_with_both_sides(tmp_path: Path) -> None:
    with create(tmp_path / "run") as session:
        drive(session, FakeDriver(model="a", seed=1))
        with pytest.raises(StateMismatchError, match="model: was 'a', is 'b'"):
            drive(session, FakeDriver(model="b", seed=1))
        drive(session, FakeDriver(model="b", seed=1), accept_changes=True)
        drive(session, FakeDriver(model="b", seed=1))


def test_settings_of_a_run_that_could_not_start_are_not_kept(tmp_path: Path) -> None:
    class Wrong(FakeDriver):
        def check(self, session: Any) -> list[str]:
            raise DriverError("wrong flags")

    with create(tmp_path / "run") as session:
        with pytest.raises(DriverError, match="wrong flags"):
            drive(session, Wrong(model="typo"))
        drive(session, FakeDriver(model="right"))


def test_a_damaged_settings_file_is_said_to_be(tmp_path: Path) -> None:
    with create(tmp_path / "run") as session:
        (tmp_path / "run" / "driver.json").write_text("{")
        with pytest.raises(StateMismatchError, match="is damaged"):
            drive(session, FakeDriver())
