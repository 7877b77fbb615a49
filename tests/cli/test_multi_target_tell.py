"""``gp-eval tell`` with several targets: words, files, standard input."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from command import gp_eval
from multi_target_commands import told


def test_words_are_of_the_target_that_is_named(joint: Path) -> None:
    outcome = gp_eval("tell", joint, "--target", "b c", "q1=1", "q2=0.5")
    assert outcome.code == 0
    assert outcome.out == ""
    assert "2 told" in outcome.err
    assert "b c: n = 2 of 40, estimate 0." in outcome.err
    assert "a: n" not in outcome.err
    assert told(joint) == {"a": 0, "b c": 2}


FILES = [
    ("s.csv", "target,item,score\na,q1,0.5\nb c,q1,1\nb c,q2,1\n"),
    ("s.csv", "score,extra,target,item\n0.5,x,a,q1\n1,,b c,q1\n1,,b c,q2\n"),
    ("s.json", '{"a": {"q1": 0.5}, "b c": {"q1": 1, "q2": 1}}'),
    (
        "s.jsonl",
        '{"target": "a", "item": "q1", "score": 0.5}\n'
        '{"target": "b c", "item": "q1", "score": 1}\n\n'
        '{"score": 1, "item": "q2", "target": "b c", "extra": {}}\n',
    ),
]


@pytest.mark.parametrize(("name", "text"), FILES)
def test_scores_from_a_file(joint: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    outcome = gp_eval("tell", joint, "--from", tmp_path / name)
    assert outcome.code == 0, outcome.err
    assert told(joint) == {"a": 1, "b c": 2}


@pytest.mark.parametrize(("_name", "text"), FILES)
def test_scores_from_standard_input(
    joint: Path, monkeypatch: pytest.MonkeyPatch, _name: str, text: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert gp_eval("tell", joint, "--from", "-").code == 0
    assert told(joint) == {"a": 1, "b c": 2}


def test_a_single_line_of_json_is_one_score(joint: Path, tmp_path: Path) -> None:
    (tmp_path / "s").write_text('{"target": "a", "item": "q1", "score": 0.5}')
    assert gp_eval("tell", joint, "--from", tmp_path / "s").code == 0
    assert told(joint) == {"a": 1, "b c": 0}


@pytest.mark.parametrize(
    "text",
    [
        "item,score\nq1,0.5\nq2,1\n",
        '{"q1": 0.5, "q2": 1}',
        '{"item": "q1", "score": 0.5}\n{"target": null, "item": "q2", "score": 1}\n',
        "target,item,score\na,q1,0.5\na,q2,1\n",
    ],
)
def test_a_file_may_be_of_the_target_that_is_named(
    joint: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "s").write_text(text)
    outcome = gp_eval("tell", joint, "--target", "a", "--from", tmp_path / "s")
    assert outcome.code == 0, outcome.err
    assert told(joint) == {"a": 2, "b c": 0}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["q1=1"], "has several, 'a', 'b c': name one by --target"),
        (["--target", "x", "q1=1"], "'x' is not among the targets of this session"),
        (["--target", "a", "q1=1", "q99=1"], "'q99' is not among the 40 items"),
        (["--target", "a", "q1=1", "q1=1"], "'q1' is given twice"),
        (["--target", "a", "q1=1", "q7=0.1"], "'q7' of target 'a' was told before"),
    ],
)
def test_one_bad_word_rejects_all(joint: Path, flags: list[str], message: str) -> None:
    gp_eval("tell", joint, "--target", "a", "q7=0.5")
    before = (joint / "events.jsonl").read_bytes()
    outcome = gp_eval("tell", joint, *flags)
    assert outcome.code == 1
    assert message in outcome.err
    assert outcome.out == ""
    assert (joint / "events.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,score\nq1,1\n", "has several, 'a', 'b c'"),
        ('{"a": {"q1": 1}, "q2": 1}', "has several, 'a', 'b c'"),
        ("target,item,score\nx,q1,1\n", "'x' is not among the targets"),
        ("target,item,score\n,q1,1\n", "'' is not among the targets"),
        ("target,item,score\na,q1,1\na,q1,1\n", "'q1' is given twice"),
        ('{"a": {"q1": 1, "q1": 1}}', "'q1' is given twice"),
        ('{"a": {"q1": 1}, "a": {"q1": 1}}', "'q1' is given twice"),
        ('{"a": {"q1": {"q2": 1}}}', "score of 'q1': expected a number"),
        ('{"a": ["q1"]}', "score of 'a': expected a number"),
        ("target,score\na,1\n", "CSV columns item and score"),
        ('{"target": "a", "score": 1}\n{"target": "a"}\n', "expected"),
    ],
)
def test_files_that_cannot_be_told(
    joint: Path, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "s").write_text(text)
    outcome = gp_eval("tell", joint, "--from", tmp_path / "s")
    assert outcome.code == 1
    assert message in outcome.err
    assert (joint / "events.jsonl").read_bytes() == b""


def test_a_file_that_contradicts_the_named_target(joint: Path, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("target,item,score\na,q1,1\nb c,q1,1\n")
    outcome = gp_eval("tell", joint, "--target", "a", "--from", tmp_path / "s")
    assert outcome.code == 1
    assert "target: 'b c' for item 'q1', but --target is 'a'" in outcome.err
    (tmp_path / "s").write_text(
        '{"item": "q1", "score": 1}\n{"target": "a", "item": "q1", "score": 1}\n'
    )
    outcome = gp_eval("tell", joint, "--target", "a", "--from", tmp_path / "s")
    assert outcome.code == 1
    assert "'q1' of 'a' is given twice" in outcome.err
    assert told(joint) == {"a": 0, "b c": 0}


def test_the_only_target_may_be_named_and_no_other(
    single: Path, tmp_path: Path
) -> None:
    assert gp_eval("tell", single, "--target", "a", "q1=1").code == 0
    (tmp_path / "s").write_text("target,item,score\na,q2,1\n")
    assert gp_eval("tell", single, "--from", tmp_path / "s").code == 0
    (tmp_path / "s").write_text('{"a": {"q3": 1}}')
    assert gp_eval("tell", single, "--from", tmp_path / "s").code == 0
    assert told(single) == {"a": 3}
    (tmp_path / "s").write_text("target,item,score\nb,q4,1\n")
    for words in (("--target", "b", "q4=1"), ("--from", tmp_path / "s")):
        outcome = gp_eval("tell", single, *words)
        assert outcome.code == 1
        assert "'b' is not among the targets of this session, 'a'" in outcome.err


def test_the_variable_that_names_targets_is_not_read_by_tell(
    joint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GP_EVAL_TARGET", "a")
    assert "has several" in gp_eval("tell", joint, "q1=1").err
