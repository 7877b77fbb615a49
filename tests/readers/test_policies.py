"""Every policy does what it says and is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logs import inspect_sample, lm_row, write_eval, write_lm_eval

from gp_eval.errors import DataError
from gp_eval.readers import Built, Policies, build_references, read_logs


def build(folder: Path, **policies: Any) -> Built:
    return build_references(read_logs([folder]), policies=Policies(**policies))


def write_failing(folder: Path) -> None:
    """Two models; ``m`` fails on b and has no score on c."""
    bad = [
        inspect_sample("a", "C"),
        inspect_sample("b", error="x"),
        inspect_sample("c", float("nan")),
        inspect_sample("d", float("inf")),
    ]
    write_eval(folder / "m.eval", bad, model="m", task_id="1")
    good = [inspect_sample(i, "C") for i in "abcd"]
    write_eval(folder / "n.eval", good, model="n", task_id="2")


def test_failed_items_stop_the_build_unless_a_policy_is_named(tmp_path: Path) -> None:
    write_failing(tmp_path)
    with pytest.raises(
        DataError, match="1 errored, 1 unscored, 1 infinite scores .*'m'.*'b', 'c'"
    ):
        build(tmp_path)


def test_failed_items_become_gaps_or_zeros(tmp_path: Path) -> None:
    write_failing(tmp_path)
    skipped = build(tmp_path, on_error="skip", missing="keep")
    np.testing.assert_array_equal(skipped.scores[:, 0], [1.0, *[np.nan] * 3])
    zero = build(tmp_path, on_error="zero")
    assert zero.scores[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    for built in (skipped, zero):
        counts = built.counts
        assert (counts["errored"], counts["unscored"], counts["infinite"]) == (1, 1, 1)
    assert skipped.counts["missing_cells"] == 3


def test_zero_is_the_worst_score_of_a_turned_scale(tmp_path: Path) -> None:
    write_failing(tmp_path)
    turned = build(tmp_path, on_error="zero", lower_is_better=True)
    assert turned.scores[:, 0].tolist() == [0.0, 0.0, 0.0, 0.0]
    with pytest.raises(DataError, match="nothing is 0"):
        build(tmp_path, on_error="zero", lower_is_better=True, scale="keep")


def write_partial(folder: Path) -> None:
    """Ten items; ``b`` has eight of them, ``c`` two."""
    for model, n in (("a", 10), ("b", 8), ("c", 2)):
        write_lm_eval(folder, [lm_row(i, em=i % 2) for i in range(n)], model=model)


def test_gaps_stop_the_build_and_name_the_models(tmp_path: Path) -> None:
    write_partial(tmp_path)
    with pytest.raises(
        DataError, match=r"10 missing.*'b: 8 of 10', 'c: 2 of 10'.*drop"
    ):
        build(tmp_path)


@pytest.mark.parametrize(
    ("policies", "shape", "dropped"),
    [
        ({"missing": "keep"}, (10, 3), []),
        ({"missing": "drop-items"}, (2, 3), []),
        ({"missing": "drop-models"}, (10, 1), ["b", "c"]),
        ({"missing": "drop-items", "min_coverage": 0.8}, (8, 2), ["c"]),
        ({"min_coverage": 0.81}, (10, 1), ["b", "c"]),
    ],
)
def test_gaps_go_by_policy(
    tmp_path: Path, policies: dict, shape: tuple[int, int], dropped: list[str]
) -> None:
    write_partial(tmp_path)
    built = build(tmp_path, **policies)
    assert built.scores.shape == shape
    assert built.counts["models_dropped"] == dropped
    assert built.counts["items_dropped"] == 10 - shape[0]
    assert built.counts["partial_runs"] == {"b": "8 of 10", "c": "2 of 10"}
    assert built.references().scores.shape == shape


def test_items_that_no_kept_model_has_are_dropped_and_counted(tmp_path: Path) -> None:
    write_lm_eval(tmp_path, [lm_row(i, em=1) for i in range(8)], model="a")
    write_lm_eval(tmp_path, [lm_row(i, em=1) for i in (0, 8)], model="b")
    built = build(tmp_path, missing="keep", min_coverage=0.5)
    assert built.counts["items_without_score"] == 1
    assert built.meta["items_left_out"] == ["8"]


def test_a_run_of_a_part_of_the_benchmark_is_reported(tmp_path: Path) -> None:
    results = {"n-samples": {"task": {"original": 100, "effective": 3}}, "config": {}}
    write_lm_eval(tmp_path, [lm_row(i, em=1) for i in (4, 5, 9)], results=results)
    built = build(tmp_path)
    assert list(built.counts["partial_runs"].values()) == ["3 of 100"]


def test_documents_that_differ_are_refused_unless_told_otherwise(
    tmp_path: Path,
) -> None:
    write_lm_eval(tmp_path, [lm_row(0, em=1), lm_row(1, em=1)], model="a")
    other = [lm_row(0, em=1), lm_row(1, em=1) | {"doc_hash": "ff" * 32}]
    write_lm_eval(tmp_path, other, model="b")
    with pytest.raises(DataError, match="items '1' are not the same documents"):
        build(tmp_path)
    built = build(tmp_path, hashes="ignore")
    assert built.counts["items_whose_digests_differ"] == 1
    assert set(built.meta["item_hashes"]) == {"0"}


def test_prompts_that_differ_are_counted(tmp_path: Path) -> None:
    write_lm_eval(tmp_path, [lm_row(0, em=1)], model="a")
    other = [lm_row(0, em=1) | {"prompt_hash": "ab" * 32}]
    write_lm_eval(tmp_path, other, model="b")
    assert build(tmp_path).counts["items_whose_prompts_differ"] == 1


def test_a_file_appended_to_is_averaged(tmp_path: Path) -> None:
    rows = [lm_row(i, em=float(k)) for k in range(2) for i in range(3)]
    write_lm_eval(tmp_path, rows)
    built = build(tmp_path)
    assert built.scores.tolist() == [[0.5]] * 3
    assert built.counts["repeats_averaged"] == 3


def test_runs_without_dates_have_no_latest(tmp_path: Path) -> None:
    for name, score in (("a", 0), ("b", 1)):
        (tmp_path / f"{name}.csv").write_text(f"item,model,score\nq,m,{score}\n")
    with pytest.raises(DataError, match="no latest one"):
        build(tmp_path, runs="latest")
    assert build(tmp_path, runs="mean").scores.item() == 0.5


def test_the_latest_run_wins_item_by_item(tmp_path: Path) -> None:
    rows = [lm_row(i, em=0) for i in range(3)]
    write_lm_eval(tmp_path, rows, date="2026-01-01T00-00-00.1")
    write_lm_eval(tmp_path, [lm_row(1, em=1)], date="2026-01-02T00-00-00.1")
    assert build(tmp_path, runs="latest").scores[:, 0].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({"scale": (0.0, 4.0)}, [0.25, 0.75]),
        ({"scale": (0.0, 4.0), "lower_is_better": True}, [0.75, 0.25]),
        ({"scale": "keep"}, [1.0, 3.0]),
        ({"scale": "keep", "lower_is_better": True}, [-1.0, -3.0]),
    ],
)
def test_scales_and_directions(
    tmp_path: Path, policies: dict, expected: list[float]
) -> None:
    (tmp_path / "a.csv").write_text("item,model,score\na,m,1\nb,m,3\n")
    assert build(tmp_path, **policies).scores[:, 0].tolist() == expected


def test_scores_outside_the_scale_are_never_clipped(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,model,score\na,m,1\nb,m,3\n")
    for policies in ({}, {"scale": (0.0, 2.9)}, {"scale": (1.1, 3.0)}):
        with pytest.raises(DataError, match="between 1 and 3"):
            build(tmp_path, **policies)


@pytest.mark.parametrize(
    "policies",
    [{"runs": "first"}, {"min_coverage": 1.5}, {"scale": (1.0, 1.0)}, {"missing": "x"}],
)
def test_unknown_policies_are_refused(policies: dict) -> None:
    with pytest.raises(DataError, match=next(iter(policies))):
        Policies(**policies)


def test_several_tasks_are_asked_for_and_become_groups(tmp_path: Path) -> None:
    for task, n in (("b_law", 3), ("a_math", 12)):
        write_lm_eval(tmp_path, [lm_row(i, acc=1) for i in range(n)], task=task)
    collection = read_logs([tmp_path])
    with pytest.raises(DataError, match=r"(?s)--task.*a_math \(12 scores.*b_law \(3"):
        build_references(collection)
    with pytest.raises(DataError, match="--task c: not in these logs"):
        build_references(collection, tasks=["c"])
    built = build_references(collection, tasks=["*"])
    assert built.items[:3] == ["a_math/0", "a_math/1", "a_math/2"]
    assert built.items[9:12] == ["a_math/9", "a_math/10", "a_math/11"]
    assert built.groups == ["a_math"] * 12 + ["b_law"] * 3


def test_a_metric_that_some_tasks_lack_is_refused(tmp_path: Path) -> None:
    write_lm_eval(tmp_path, [lm_row(0, acc=1)], task="a")
    write_lm_eval(tmp_path, [lm_row(0, em=1)], task="b")
    with pytest.raises(DataError, match="tasks without it: b"):
        build_references(read_logs([tmp_path]), tasks=["*"], metric="acc")


def test_order_of_files_does_not_matter(tmp_path: Path) -> None:
    write_partial(tmp_path)
    files = sorted(tmp_path.rglob("samples*"))
    policies = Policies(missing="keep")
    a = build_references(read_logs(files), policies=policies)
    b = build_references(read_logs(files[::-1]), policies=policies)
    assert (a.items, a.models, a.meta) == (b.items, b.models, b.meta)
    np.testing.assert_array_equal(a.scores, b.scores)


def test_a_literal_loop_over_rows_builds_the_same_table(tmp_path: Path) -> None:
    """Slow, by the book: mean over epochs, then the mean over runs."""
    rng = np.random.default_rng(0)
    lines, cells = ["item,model,score,epoch"], {}
    for item in rng.permutation(20):
        for model in "mn":
            for epoch in range(1, 1 + rng.integers(1, 4)):
                score = round(float(rng.random()), 6)
                lines.append(f"{item},{model},{score},{epoch}")
                cells.setdefault((str(item), model), []).append(score)
    (tmp_path / "a.csv").write_text("\n".join(lines))
    built = build(tmp_path)
    for i, item in enumerate(built.items):
        for k, model in enumerate(built.models):
            expected = sum(cells[item, model]) / len(cells[item, model])
            assert built.scores[i, k] == pytest.approx(expected, rel=1e-10)
