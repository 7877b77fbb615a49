"""Any command: a shell script that is slow, wrong, killed, or fails now and then."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from driving import create, dying_at, in_a_child, script, told_in
from logs import lm_row, write_lm_eval
from multi_target_sessions import create as create_joint
from sessions import score_of

from gp_eval import Result, Session
from gp_eval.drivers import CommandDriver, drive
from gp_eval.drivers.command import read_lines
from gp_eval.errors import DataError, DriverError, ScoreError

LOOK_UP = """
while read -r item; do
  echo "$item" >> "$CALLS"
  grep "^$item=" "$TABLE" >> "$2"
done < "$1"
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().split() if path.exists() else []


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The result of a run without interruption."""
    folder = tmp_path_factory.mktemp("straight")
    with create(folder / "run") as session:
        drive(session, script(folder, LOOK_UP), batch=5)
        return session.estimate()


def resumed(folder: Path, driver: CommandDriver) -> Result:
    with Session.open(folder / "run") as session:
        drive(session, driver, batch=5)
        return session.estimate()


def test_a_script_is_driven_to_the_stop(tmp_path: Path, straight: Result) -> None:
    driver = script(tmp_path, LOOK_UP)
    with create(tmp_path / "run") as session:
        drive(session, driver, batch=5)
        told = {
            session.references.items[i]: s for i, s in session._loop.scores[0].items()
        }
    assert calls(tmp_path) == straight.items == list(told)
    assert told == {item: score_of(item) for item in straight.items}


def test_a_script_that_fails_now_and_then(tmp_path: Path, straight: Result) -> None:
    """Every third call ends early, some items have no score, others a word."""
    driver = script(
        tmp_path,
        """
echo x >> "$HERE/runs"
n=$(wc -l < "$HERE/runs")
k=0
while read -r item; do
  k=$((k + 1))
  [ $((n % 3)) = 0 ] && [ $k = 2 ] && exit 7
  if [ $((n % 2)) = 1 ] && [ $k = 3 ]; then echo "$item=error" >> "$2"; continue; fi
  echo "$item" >> "$CALLS"
  grep "^$item=" "$TABLE" >> "$2"
done < "$1"
""",
    )
    with create(tmp_path / "run") as session:
        drive(session, driver, batch=5)
        assert session.estimate() == straight
    assert sorted(calls(tmp_path)) == sorted(straight.items)  # no score twice


# Killed


@needs_fork
@pytest.mark.parametrize("death", ["before", "after"])
def test_killed_at_any_file_sync_nothing_is_lost_or_told_twice(
    tmp_path: Path, straight: Result, death: str
) -> None:
    points = 0
    for number in range(1, 100):
        folder = tmp_path / str(number)
        driver = script(folder, LOOK_UP)
        create(folder / "run").close()

        def work(folder: Path = folder, number: int = number) -> None:
            dying_at(number, death)
            with Session.open(folder / "run") as session:
                drive(session, script(folder, LOOK_UP), batch=5)

        if in_a_child(work) != signal.SIGKILL:
            break
        points += 1
        told = told_in(folder / "run")
        scored = calls(folder)
        assert resumed(folder, driver) == straight
        assert told == straight.items[: len(told)]
        assert calls(folder)[: len(scored)] == scored
        assert calls(folder) == straight.items  # none evaluated twice
    assert points >= 12  # two a folder of a batch, one or two a change of the journal


@needs_fork
@pytest.mark.parametrize("item", [1, 4, 6, 10, 12])
def test_killed_within_a_batch_the_scores_written_are_taken_up(
    tmp_path: Path, straight: Result, item: int
) -> None:
    deadly = (
        LOOK_UP.replace("done", f'[ "$(wc -l < "$CALLS")" = {item} ] && stop\ndone')
        + "\n"
    ).replace("stop", "kill -9 $PPID && exit 1")
    deadly_driver = script(tmp_path, deadly)
    create(tmp_path / "run").close()

    def work() -> None:
        with Session.open(tmp_path / "run") as session:
            drive(session, deadly_driver, batch=5)

    assert in_a_child(work) == signal.SIGKILL
    assert len(told_in(tmp_path / "run")) == (item - 1) // 5 * 5
    assert resumed(tmp_path, script(tmp_path, LOOK_UP)) == straight
    assert calls(tmp_path) == straight.items


@needs_fork
def test_a_line_cut_off_is_evaluated_again(tmp_path: Path, straight: Result) -> None:
    cut = 'read -r item < "$1"; printf "$item=0.9" >> "$2"; kill -9 $PPID'
    driver = script(tmp_path, cut)
    create(tmp_path / "run").close()

    def work() -> None:
        with Session.open(tmp_path / "run") as session:
            drive(session, driver, batch=5)

    assert in_a_child(work) == signal.SIGKILL
    assert resumed(tmp_path, script(tmp_path, LOOK_UP)) == straight


# Forms of scores


@pytest.mark.parametrize(
    "text",
    [
        "a=1\nb=0.5\nc = d=nan\n",
        'item,score\na,1\nb,0.5\n"c = d",nan\n',
        'score,item\n1,a\n0.5,b\nnan,"c = d"\n',
        '{"item": "a", "score": 1}\n{"item": "b", "score": 0.5}\n'
        '{"item": "c = d", "score": "nan"}\n',
        "\ufeffa=0\r\na=1\r\nb=0.5\r\n\r\nc = d=nan",
    ],
)
def test_forms_of_scores(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scores"
    path.write_text(text, encoding="utf-8", newline="")
    raw = read_lines(path, unfinished=False)
    assert {k: float(v) for k, v in raw.items() if k != "c = d"} == {"a": 1, "b": 0.5}
    assert str(raw["c = d"]) == "nan"


@pytest.mark.parametrize("text", ["a\n", "1,2\n", '{"item": 1}\n', "{\n", "=1\n"])
def test_files_that_hold_no_scores(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scores"
    path.write_text(text)
    with pytest.raises(ScoreError, match="expected lines ITEM=SCORE"):
        read_lines(path, unfinished=False)
    assert read_lines(path, unfinished=True) == {}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('echo "zz=1" > "$2"', "'zz' is not among the items"),
        ('sed "s/$/=high/" "$1" > "$2"', "expected a finite number, got 'high'"),
        ('sed "s/$/=1e999/" "$1" > "$2"', "expected a finite number"),
        ("exit 3", "the command ended with code 3"),
        ("true", "no score came back"),
        ('sed "s/$/=None/" "$1" > "$2"', "gave 'None' for a score"),
    ],
)
def test_scores_that_cannot_be_told(tmp_path: Path, body: str, message: str) -> None:
    with (
        create(tmp_path / "run") as session,
        pytest.raises((ScoreError, DriverError), match=message),
    ):
        drive(session, script(tmp_path, body))
    assert told_in(tmp_path / "run") == []


def test_the_scores_may_be_a_log(tmp_path: Path) -> None:
    log = write_lm_eval(tmp_path / "log", [lm_row(0, em=0.5), lm_row(1, em=0.25)])
    from gp_eval import References, StoppingRule

    references = References(
        [[0.0, 1.0], [1.0, 0.0]], ["0", "1"], ["a", "b"], meta={"metric": "em"}
    )
    driver = script(tmp_path, f'cp "{log}" "$2"')
    with Session.create(
        tmp_path / "run",
        references,
        target="new",
        stop=StoppingRule(width=1e-9, stable=1e-9),
    ) as session:
        drive(session, driver)
        assert session.estimate().mean == pytest.approx(0.375)


# Commands


@pytest.mark.parametrize("words", [[], ["./x"], ["./x", "{items}"], ["x", "{scores}"]])
def test_a_command_names_both_files(words: list[str]) -> None:
    with pytest.raises(DriverError, match=r"\{items\}|\{scores\}"):
        CommandDriver(words)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    driver = CommandDriver([str(tmp_path / "none"), "{items}", "{scores}"])
    with (
        create(tmp_path / "run") as session,
        pytest.raises(DriverError, match="cannot run"),
    ):
        drive(session, driver)


def test_no_shell_reads_the_words(tmp_path: Path) -> None:
    odd = tmp_path / "a b; touch oops"
    driver = script(odd, LOOK_UP)
    with create(odd / "run $(x)") as session:
        drive(session, driver)
        assert session.done
    assert not list(tmp_path.rglob("oops"))


def test_several_targets_need_their_place(tmp_path: Path) -> None:
    with create_joint(tmp_path / "run") as session:
        with pytest.raises(DriverError, match=r"expected \{target\} among its words"):
            drive(session, CommandDriver(["x", "{items}", "{scores}"]))
        path = tmp_path / "score.sh"
        path.write_text(
            '#!/bin/sh\nsed "s/$/=0.5/" "$1" > "$2"\necho "$3" >> ' + f"{tmp_path}/t\n"
        )
        path.chmod(0o755)
        drive(
            session,
            CommandDriver([str(path), "{items}", "{scores}", "{target}"]),
            batch=30,
        )
        assert session.done
    assert set((tmp_path / "t").read_text().splitlines()) == {"a", "b c", "naïve"}


def test_what_the_command_prints_is_not_on_stdout(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with create(tmp_path / "run") as session:
        drive(session, script(tmp_path, "echo noise\n" + LOOK_UP))
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "noise" in captured.err


@pytest.mark.parametrize("rubbish", ["{item}=oops", "zzz=1", "PK\\003\\004abc"])
def test_what_cannot_be_recovered_is_evaluated_again_by_a_mended_script(
    tmp_path: Path, straight: Result, rubbish: str
) -> None:
    """Left behind by a first run, it must not stop every later one."""
    bad = f"""
read -r item < "$1"
printf '{rubbish.replace("{item}", "%s")}\\n' "$item" > "$2"
"""
    with create(tmp_path / "run") as session:
        driver = script(tmp_path, bad)
        with pytest.raises((DriverError, ScoreError, DataError)):
            drive(session, driver, batch=5)
    assert resumed(tmp_path, script(tmp_path, LOOK_UP)) == straight
