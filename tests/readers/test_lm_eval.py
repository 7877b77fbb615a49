from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest
from logs import DATE, digest, lm_row, write_lm_eval

from gp_eval.errors import DataError
from gp_eval.readers import Log, Options, Policies, build_references, read_logs
from gp_eval.readers.lm_eval_run import run_of


def read(path: Path, **options: object) -> Log:
    (log,) = read_logs([path], options=Options(**options)).logs
    return log


def test_rows_of_several_filters_stay_apart(tmp_path: Path) -> None:
    rows = [
        *[lm_row(i, filter="strict", em=0.0) for i in range(3)],
        *[lm_row(i, filter="loose", em=1.0) for i in range(3)],
    ]
    path = write_lm_eval(tmp_path, rows)
    means = {b.filter: b.scores.mean() for b in read(path).blocks}
    assert means == {"strict": 0.0, "loose": 1.0}
    with pytest.raises(DataError, match=r"(?s)--filter.*loose \(3.*mean 1.*strict \(3"):
        build_references(read_logs([path]))
    built = build_references(read_logs([path]), filter="loose")
    assert built.scores.tolist() == [[1.0]] * 3
    with pytest.raises(DataError, match="--filter other"):
        build_references(read_logs([path]), filter="other")


def test_unnamed_filters_of_old_files_are_blocks(tmp_path: Path) -> None:
    rows = [lm_row(i, filter=None, em=float(k)) for k in range(2) for i in range(3)]
    blocks = read(write_lm_eval(tmp_path, rows)).blocks
    assert {b.filter: b.scores.tolist() for b in blocks} == {
        "block-1": [0.0] * 3,
        "block-2": [1.0] * 3,
    }
    with pytest.raises(DataError, match="more often than others"):
        read(write_lm_eval(tmp_path, rows[:-1]))


def test_one_unnamed_filter_has_no_name(tmp_path: Path) -> None:
    path = write_lm_eval(tmp_path, [lm_row(i, filter=None, em=1.0) for i in range(3)])
    assert [b.filter for b in read(path).blocks] == [""]


@pytest.mark.parametrize(
    ("ids", "documents", "reason"),
    [
        ([31, 7, 5, 2], [2, 5, 7, 31], "not in rising order"),
        ([2, 2, 5], [2, 5, 9], "id 2 stands for two documents"),
        ([-1, 3], [3, 9], "doc_id of 0 or more"),
    ],
)
def test_ids_of_an_unsorted_samples_list_are_refused(
    tmp_path: Path, ids: list[int], documents: list[int], reason: str
) -> None:
    """As lm-eval 0.4.9-0.4.13 writes them."""
    rows = [
        lm_row(i, em=1.0) | {"doc_hash": digest(d)}
        for i, d in zip(ids, documents, strict=True)
    ]
    with pytest.raises(DataError, match=reason):
        read(write_lm_eval(tmp_path, rows))


def test_an_unsorted_list_that_happens_to_be_a_prefix_is_refused(
    tmp_path: Path,
) -> None:
    rows = [lm_row(i, em=1.0) for i in (2, 0, 1)]
    results = {"n-samples": {"task": {"original": 9, "effective": 3}}, "config": {}}
    with pytest.raises(DataError, match="4084"):
        read(write_lm_eval(tmp_path, rows, results=results))
    # Without a results file only the other files can tell that it is partial.
    alone = write_lm_eval(tmp_path / "a", rows, model="org__a")
    full = write_lm_eval(tmp_path / "b", [lm_row(i, em=1.0) for i in range(9)])
    assert len(read(alone).blocks) == 1
    with pytest.raises(DataError, match="4084"):
        build_references(read_logs([alone, full]))


def test_a_shuffled_file_gives_the_same_matrix(tmp_path: Path) -> None:
    rows = [lm_row(i, acc=float(i % 3 == 0), em=float(i % 2)) for i in range(50)]
    shuffled = list(rows)
    random.Random(0).shuffle(shuffled)
    other = [lm_row(i, acc=float(i % 5 == 0), em=0.0) for i in range(50)]
    tables = []
    for name, version in (("sorted", rows), ("shuffled", shuffled)):
        folder = tmp_path / name
        write_lm_eval(folder, version, model="org__a")
        write_lm_eval(folder, other, model="org__b")
        tables.append(build_references(read_logs([folder]), metric="acc"))
    a, b = tables
    assert (a.items, a.models) == (b.items, b.models)
    np.testing.assert_array_equal(a.scores, b.scores)
    assert a.items == [str(i) for i in range(50)]  # as numbers, not "10" before "2"


def test_versions_before_named_filters_may_be_out_of_order(tmp_path: Path) -> None:
    """Ranks of 2023 wrote 0, 8, 1, 9; there was no --samples."""
    path = tmp_path / "pretrained=org__m,dtype=f_task.jsonl"
    rows = [lm_row(i, filter=None, acc=1.0) for i in (0, 8, 1, 9)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    (block,) = read(path).blocks
    assert (block.items, block.model) == (["0", "8", "1", "9"], "org/m")


def test_an_array_of_the_first_0_4_versions_is_read(tmp_path: Path) -> None:
    path = tmp_path / "org__m" / "pretrained-org__m_arc_easy.jsonl"
    path.parent.mkdir()
    rows = [lm_row(i, filter=None, acc=1.0) for i in range(3)]
    path.write_text(json.dumps(rows, indent=2))
    (block,) = read(path, tasks=("arc_easy",)).blocks
    assert (block.task, len(block.items)) == ("arc_easy", 3)


def test_packed_files_are_told_by_their_bytes(tmp_path: Path) -> None:
    path = write_lm_eval(tmp_path, [lm_row(0, em=1.0)])
    data = path.read_bytes()
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(data))
    assert read(packed).blocks[0].task == "task"
    pytest.importorskip("backports.zstd")
    from backports import zstd

    packed.write_bytes(zstd.compress(data))
    assert read(packed).blocks[0].scores.tolist() == [1.0]


def test_unusual_line_separators_within_texts_end_no_line(tmp_path: Path) -> None:
    row = lm_row(0, em=1.0) | {"target": "a\u2028b\x85c\x0bd"}
    path = write_lm_eval(tmp_path, [])
    path.write_text(json.dumps(row, ensure_ascii=False) + "\n", "utf-8")
    assert len(read(path).blocks[0].items) == 1


def test_the_results_file_names_model_direction_and_settings(tmp_path: Path) -> None:
    results = {
        "model_name": "org/real-name",
        "config": {"limit": None},
        "higher_is_better": {"task": {"ppl": False}},
        "n-shot": {"task": 5},
        "n-samples": {"task": {"original": 4, "effective": 4}},
    }
    path = write_lm_eval(
        tmp_path, [lm_row(i, ppl=0.5) for i in range(4)], results=results
    )
    (block,) = read(path).blocks
    assert (block.model, block.full_size) == ("org/real-name", 4)
    assert block.settings == {"shots": 5}
    with pytest.raises(DataError, match="lower is better"):
        build_references(read_logs([path]))
    turned = build_references(
        read_logs([path]), policies=Policies(lower_is_better=True)
    )
    kept = build_references(read_logs([path]), policies=Policies(lower_is_better=False))
    assert turned.scores.tolist() == (1.0 - kept.scores).tolist()


@pytest.mark.parametrize(
    ("name", "task", "model"),
    [
        (f"samples_a_b_{DATE}.jsonl", "a_b", "org/m"),
        (f"samples_x|y:z_{DATE}.json", "x|y:z", "org/m"),
        ("arc_write_out_info.json", "arc", "org/m"),
        ("pretrained=o__n,dtype=f_qnli.jsonl", "qnli", "o/n"),
        ("_qnli.jsonl", "qnli", "org/m"),
    ],
)
def test_names_of_files(tmp_path: Path, name: str, task: str, model: str) -> None:
    (tmp_path / "org__m").mkdir()
    run = run_of(tmp_path / "org__m" / name)
    assert (run.task, run.model) == (task, model)


def test_a_metric_that_the_harness_does_not_average_is_refused(tmp_path: Path) -> None:
    rows = [lm_row(i, rmse=0.1 * i) for i in range(4)]
    results = {
        "results": {"task": {"rmse,none": 0.2}},
        "configs": {"task": {"metric_list": [{"metric": "rmse", "aggregation": "r"}]}},
    }
    path = write_lm_eval(tmp_path, rows, results=results)
    with pytest.raises(DataError, match=r"aggregates it by 'r' to 0.2.*mean .* 0.15"):
        build_references(read_logs([path]))


def test_another_mean_than_reported_is_counted(tmp_path: Path) -> None:
    results = {"results": {"task": {"em,none": 0.9}}}
    path = write_lm_eval(tmp_path, [lm_row(0, em=1.0)], results=results)
    assert sum(read(path).notes.values()) == 1


def test_keys_beside_the_metrics_only_count_when_named(tmp_path: Path) -> None:
    rows = [lm_row(i, em=1.0) | {"extra": 0.5} for i in range(2)]
    path = write_lm_eval(tmp_path, rows)
    assert [b.metric for b in read(path).blocks] == ["em"]
    assert [b.metric for b in read(path, metric="extra").blocks] == ["em", "extra"]


def test_suites_stand_for_their_tasks(tmp_path: Path) -> None:
    results = {"group_subtasks": {"mmlu": ["mmlu_stem"], "mmlu_stem": ["a", "b"]}}
    for task in ("a", "b", "other"):
        write_lm_eval(
            tmp_path, [lm_row(0, acc=1.0)], task=task, results=results, model="m"
        )
    built = build_references(read_logs([tmp_path]), tasks=["mmlu"])
    assert built.items == ["a/0", "b/0"]
    assert built.groups == ["a", "b"]
