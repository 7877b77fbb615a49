"""Scores of a target, and items in the words of the harnesses."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pytest
from logs import choice_row, inspect_sample, lm_row, write_eval, write_lm_eval

from gp_eval.errors import DataError, ScoreError
from gp_eval.readers import (
    Built,
    Options,
    Policies,
    as_inspect_ids,
    as_lm_eval_samples,
    build_references,
    is_log,
    read_logs,
    read_told,
    split_items,
)


def built_from(folder: Path, **options: Any) -> Built:
    """References of ten items and two metrics, and a target's log in TARGET."""
    for model in ("a", "b"):
        rows = [lm_row(i, em=i % 2, f1=0.5) for i in range(10)]
        write_lm_eval(folder / "refs", rows, model=model)
    return build_references(read_logs([folder / "refs"]), metric="em", **options)


def told(path: Path, built: Built, **options: Any) -> dict[str, float]:
    return read_told(path, items=built.items, meta=built.meta, **options).scores


def test_metric_and_filter_are_those_of_the_references(tmp_path: Path) -> None:
    built = built_from(tmp_path)
    rows = [lm_row(i, em=0.25, f1=1.0) for i in (2, 5)]
    rows += [lm_row(i, filter="other", em=0.75, f1=1.0) for i in (2, 5)]
    path = write_lm_eval(tmp_path, rows, model="new")
    assert told(path, built) == {"2": 0.25, "5": 0.25}
    assert told(path, built, metric="f1") == {"2": 1.0, "5": 1.0}
    assert told(path, built, filter="other") == {"2": 0.75, "5": 0.75}


def test_scale_and_direction_are_those_of_the_references(tmp_path: Path) -> None:
    policies = Policies(scale=(0.0, 2.0), lower_is_better=True)
    built = built_from(tmp_path, policies=policies)
    path = write_lm_eval(tmp_path, [lm_row(2, em=0.5)], model="new")
    assert told(path, built) == {"2": 0.75}


def test_gold_probabilities_are_told_as_they_were_built(tmp_path: Path) -> None:
    rows = [choice_row(i, [-1.0, -1.0], "0", acc=1.0) for i in range(3)]
    write_lm_eval(tmp_path / "refs", rows)
    options = Options(value="gold-prob", metric="acc_norm")
    built = build_references(
        read_logs([tmp_path / "refs"], options=options), metric="gold_prob_norm"
    )
    path = write_lm_eval(tmp_path, [choice_row(1, [-1.0, -4.0], "0", acc=1.0)])
    assert told(path, built) == {
        "1": pytest.approx(1 / (1 + 2.718281828459045 ** (-2 + 1)), rel=1e-10)
    }


def test_a_document_of_another_digest_is_refused(tmp_path: Path) -> None:
    """What an unsorted --samples list would tell."""
    built = built_from(tmp_path)
    row = lm_row(2, em=1.0) | {"doc_hash": lm_row(3)["doc_hash"]}
    with pytest.raises(ScoreError, match="'2' are not the documents"):
        told(write_lm_eval(tmp_path, [row], model="new"), built)


def test_a_prefix_out_of_order_is_refused(tmp_path: Path) -> None:
    built = built_from(tmp_path)
    rows = [{**lm_row(i, em=1.0), "doc_hash": ""} for i in (1, 0, 2)]
    with pytest.raises(DataError, match="4084"):
        told(write_lm_eval(tmp_path, rows, model="new"), built)


def test_unknown_items_are_refused_and_left_out_ones_are_not(tmp_path: Path) -> None:
    built = built_from(tmp_path)
    path = write_lm_eval(tmp_path, [lm_row(i, em=1.0) for i in (9, 10)], model="new")
    with pytest.raises(ScoreError, match="'10' are not among the 10 items"):
        told(path, built)
    built.meta["items_left_out"] = ["10"]
    assert told(path, built) == {"9": 1.0}


def test_failed_items_stay_pending_unless_scored_zero(tmp_path: Path) -> None:
    write_eval(tmp_path / "r.eval", [inspect_sample(i, "C") for i in "abc"])
    built = build_references(read_logs([tmp_path / "r.eval"]))
    samples = [inspect_sample("a", "C"), inspect_sample("b", error="x")]
    path = write_eval(tmp_path / "t.eval", samples, model="new")
    got = read_told(path, items=built.items, meta=built.meta)
    assert (got.scores, got.counts["errored"]) == ({"a": 1.0}, 1)
    assert told(path, built, on_error="zero") == {"a": 1.0, "b": 0.0}
    with pytest.raises(DataError, match="1 errored"):
        told(path, built, on_error="error")


def test_the_first_items_are_noticed(tmp_path: Path) -> None:
    built = built_from(tmp_path)
    for ids, expected in (([0, 1, 2], True), ([0, 2, 3], False), (range(10), False)):
        path = write_lm_eval(tmp_path, [lm_row(i, em=1.0) for i in ids], model="new")
        got = read_told(path, items=built.items, meta=built.meta)
        assert got.is_prefix is expected


def test_several_models_in_a_log_are_asked_for(tmp_path: Path) -> None:
    built = built_from(tmp_path)
    path = tmp_path / "long.csv"
    path.write_text("item_id,model,score,metric\n2,m,1,em\n2,n,0,em\n")
    with pytest.raises(DataError, match="'m', 'n': name one"):
        told(path, built)
    assert told(path, built, model="n") == {"2": 0.0}


def test_ids_of_several_tasks_have_their_task(tmp_path: Path) -> None:
    for task in ("law", "math"):
        rows = [lm_row(i, em=1.0) for i in range(3)]
        write_lm_eval(tmp_path / "refs", rows, task=task, model="a")
    built = build_references(read_logs([tmp_path / "refs"]), tasks=["*"])
    path = write_lm_eval(tmp_path, [lm_row(1, em=0.0)], task="law", model="new")
    assert told(path, built) == {"law/1": 0.0}
    other = write_lm_eval(tmp_path, [lm_row(1, em=0.0)], task="art", model="new")
    with pytest.raises(DataError, match="of task 'art', the references are of"):
        told(other, built)
    groups = dict(zip(built.items, built.groups or [], strict=True))
    split = split_items(["math/2", "law/1", "math/0"], meta=built.meta, groups=groups)
    assert as_lm_eval_samples(split) == {"math": [0, 2], "law": [1]}
    assert as_inspect_ids(split) == ["math:2", "math:0", "law:1"]


def test_plain_files_of_scores_are_no_logs(tmp_path: Path) -> None:
    for name, text in (
        ("a.csv", "item,score\na,1\n"),
        ("a.json", '{"a": 1}'),
        ("a.jsonl", '{"item": "a", "score": 1}\n'),
    ):
        (tmp_path / name).write_text(text)
        assert not is_log(tmp_path / name)
    assert not is_log(tmp_path / "absent")
    assert is_log(write_lm_eval(tmp_path, [lm_row(0, em=1)]))


def test_lists_for_lm_eval_are_sorted_unique_and_never_empty() -> None:
    split = {"a": ["31", "7", "7", "2"], "b": []}
    assert as_lm_eval_samples(split) == {"a": [2, 7, 31]}
    with pytest.raises(DataError, match="'q1'"):
        as_lm_eval_samples({"a": ["q1"]})


def test_ids_for_inspect_match_themselves_and_nothing_else() -> None:
    ids = ["b[1]", "b1", "a*", "abc", "q?", "qq"]
    for item, pattern in zip(ids, as_inspect_ids({"t": ids}), strict=True):
        assert [other for other in ids if fnmatch.fnmatch(other, pattern)] == [item]


def test_a_task_is_asked_for_where_the_references_name_none() -> None:
    with pytest.raises(DataError, match="give --task"):
        split_items(["1"], meta={}, groups={})
    assert split_items(["1"], meta={}, groups={}, task="t") == {"t": ["1"]}


def test_prompts_that_are_not_the_references_are_counted(tmp_path: Path) -> None:
    """Other shots or another template; only where all references agree."""
    for model in ("a", "b"):
        rows = [lm_row(i, em=i % 2) for i in range(4)]
        if model == "b":
            rows[3]["prompt_hash"] = "e" * 64
        write_lm_eval(tmp_path / "refs", rows, model=model)
    built = build_references(read_logs([tmp_path / "refs"]))
    assert sorted(built.meta["prompt_hashes"]) == ["0", "1", "2"]
    rows = [lm_row(i, em=0.5) for i in range(4)]
    rows[1]["prompt_hash"] = rows[3]["prompt_hash"] = "f" * 64
    path = write_lm_eval(tmp_path, rows, model="new")
    told = read_told(path, items=built.items, meta=built.meta)
    assert told.counts["items_with_other_prompts_than_the_references"] == 1
    assert len(told.scores) == 4


def test_a_log_whose_every_item_failed_tells_nothing(tmp_path: Path) -> None:
    built = built_from(tmp_path)
    rows = [lm_row(i, em=float("nan"), f1=1.0) for i in (2, 5)]
    path = write_lm_eval(tmp_path, rows, model="new")
    assert told(path, built) == {}
