"""HELM, lighteval, Every Eval Ever, tables and pickles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gp_eval.errors import DataError
from gp_eval.readers import Log, Options, Policies, build_references, detect, read_logs


def read(path: Path, **options: Any) -> Log:
    (log,) = read_logs([path], options=Options(**options)).logs
    return log


# HELM


def stat(name: str, mean: float | None, **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": {"name": name, "split": "test", **more},
        "count": 1,
    }
    return entry if mean is None else entry | {"mean": mean}


def instance(item: str, stats: list[dict], trial: int = 0, **more: Any) -> dict:
    return {"instance_id": item, "train_trial_index": trial, "stats": stats, **more}


def write_helm(folder: Path, instances: list[dict]) -> Path:
    run = folder / "mmlu:subject=law,method=joint,model=openai_gpt2"
    run.mkdir(parents=True)
    (run / "per_instance_stats.json").write_text(json.dumps(instances))
    return run / "per_instance_stats.json"


def test_helm_merges_metric_objects_averages_trials_and_drops_copies(
    tmp_path: Path,
) -> None:
    path = write_helm(
        tmp_path,
        [
            instance("id1", [stat("exact_match", 1.0), stat("num_bytes", 9.0)]),
            instance("id1", [stat("exact_match", 1.0), stat("f1", 0.5)]),
            instance("id1", [stat("exact_match", 0.0), stat("f1", 0.5)], trial=1),
            instance("id2", [stat("exact_match", 0.0), stat("f1", 1.0)]),
            instance("id2", [stat("exact_match", 1.0)], perturbation={"name": "typos"}),
        ],
    )
    log = read(path)
    assert {b.metric for b in log.blocks} == {"exact_match", "f1"}
    assert log.notes["perturbed copies left out"] == 1
    assert (log.blocks[0].model, log.blocks[0].task) == (
        "openai/gpt2",
        "mmlu:subject=law,method=joint",
    )
    built = build_references(read_logs([path]), metric="exact_match")
    assert dict(zip(built.items, built.scores[:, 0], strict=True)) == {
        "id1": 0.5,
        "id2": 0.0,
    }


def test_helm_statistics_without_a_mean_are_unscored(tmp_path: Path) -> None:
    path = write_helm(
        tmp_path, [instance("a", [stat("em", None)]), instance("b", [stat("em", 1.0)])]
    )
    with pytest.raises(DataError, match="1 unscored"):
        build_references(read_logs([path]))


def test_helm_refuses_two_values_of_one_statistic(tmp_path: Path) -> None:
    twice = [instance("a", [stat("em", v)]) for v in (0.0, 1.0)]
    with pytest.raises(DataError, match="'em' of 'a' has two values"):
        read(write_helm(tmp_path, twice))


def test_helm_displays_are_read_where_statistics_are_not(tmp_path: Path) -> None:
    shown = [{"instance_id": "a", "train_trial_index": 0, "stats": {"em": 1.0}}]
    path = tmp_path / "display_predictions.json"
    path.write_text(json.dumps(shown))
    assert read(path).blocks[0].scores.tolist() == [1.0]
    (tmp_path / "per_instance_stats.json").write_text(
        json.dumps([instance("a", [stat("em", 1.0)])])
    )
    collection = read_logs([tmp_path])
    assert [log.path.name for log in collection.logs] == ["per_instance_stats.json"]


# lighteval


def test_lighteval_of_every_age_is_aligned_by_text_or_id(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    texts = ["first", "second", "third"]
    frames = {
        "struct": [{"example": t, "metrics": {"acc": i}} for i, t in enumerate(texts)],
        "text": [
            {"example": t, "metrics": f"{{'acc': {i}}}"} for i, t in enumerate(texts)
        ],
        "top": [
            {"example": t, "hashes": {"example": f"{i:016x}"}, "acc": str(float(i))}
            for i, t in enumerate(texts)
        ],
    }
    for name, rows in frames.items():
        tables = []
        for order in ([0, 1, 2], [2, 0, 1]):
            path = tmp_path / f"details_{name}_2023-08-01T10:00:00.1.parquet"
            pd.DataFrame([rows[i] for i in order]).to_parquet(path)
            built = build_references(
                read_logs([path]), policies=Policies(scale=(0.0, 2.0))
            )
            tables.append(dict(zip(built.items, built.scores[:, 0], strict=True)))
        assert tables[0] == tables[1]
        assert sorted(tables[0].values()) == [0.0, 0.5, 1.0]


def test_lighteval_items_of_equal_text_are_told_apart_and_counted(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pyarrow")
    rows = [{"example": "same", "metrics": {"acc": float(i)}} for i in range(2)]
    path = tmp_path / "details_x_2024-01-01T00-00-00.parquet"
    pd.DataFrame(rows).to_parquet(path)
    log = read(path)
    assert len(set(log.blocks[0].items)) == 2
    assert log.notes["items of equal text, told apart by order"] == 1


def test_long_answers_in_a_table_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "x_predictions.csv"
    answer = "x" * 200_000
    path.write_text(f"index,prediction_a,label_a\n0,{answer},1\n1,y,0\n")
    assert read(path).blocks[0].scores.tolist() == [0.0, 1.0]


# Every Eval Ever


def eee_row(item: str, score: Any, model: str = "o/m", **more: Any) -> dict[str, Any]:
    return {
        "evaluation_id": "e",
        "model_id": model,
        "evaluation_name": "bench",
        "sample_id": item,
        "evaluation": {"score": score, "is_correct": bool(score)},
        **more,
    }


def test_every_eval_ever_holds_several_models_and_a_direction(tmp_path: Path) -> None:
    path = tmp_path / "u_samples.jsonl"
    rows = [eee_row("a", 0.25), eee_row("a", 0.75, model="o/n")]
    path.write_text("\n".join(json.dumps(r) for r in rows))
    built = build_references(read_logs([path]))
    assert (built.models, built.scores.tolist()) == (["o/m", "o/n"], [[0.25, 0.75]])
    result = {"evaluation_name": "bench", "metric_config": {"lower_is_better": True}}
    (tmp_path / "u.json").write_text(json.dumps({"evaluation_results": [result]}))
    with pytest.raises(DataError, match="lower is better"):
        build_references(read_logs([path]))
    assert read(path, metric="is_correct").blocks[0].metric == "is_correct"


# Tables


def test_a_long_table_with_every_column(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(
        "item_id,model,score,metric,task,group,weight,epoch\n"
        "007,m,1,acc,t,g1,2,1\n007,m,0,acc,t,g1,2,2\n8,m,,acc,t,g2,1,1\n"
        "8,n,0.5,acc,t,g2,1,1\n007,n,1,acc,t,g1,2,1\n8,m,9,other,t,g2,1,1\n"
    )
    built = build_references(
        read_logs([path]), metric="acc", policies=Policies(missing="keep")
    )
    assert built.items == ["007", "8"]  # ids stay texts
    assert built.groups == ["g1", "g2"]
    assert built.item_weights == [2.0, 1.0]
    np.testing.assert_array_equal(built.scores, [[0.5, 1.0], [np.nan, 0.5]])
    assert built.counts["missing_cells"] == 1


def test_a_score_given_twice_needs_a_column_epoch(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("item,model,score\na,m,1\na,m,1\n")
    with pytest.raises(DataError, match="'m: a'; repetitions need a column epoch"):
        read(path)


def test_several_score_columns_are_metrics(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("id,model,score,acc\na,m,0.5,1\n")
    with pytest.raises(DataError, match=r"(?s)--metric.*acc.*score"):
        build_references(read_logs([path]))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_wide_tables_of_either_orientation(tmp_path: Path, separator: str) -> None:
    by_item, by_model = tmp_path / "a.csv", tmp_path / "b.csv"
    rows = ["item_id,m,n", "q1,1,0", "q2,,0.5"]
    by_item.write_text("\r\n".join(rows).replace(",", separator), "utf-8-sig")
    rows = ["model,q1,q2", "m,1,", "n,0,0.5"]
    by_model.write_text("\n".join(rows).replace(",", separator))
    for path in (by_item, by_model):
        built = build_references(read_logs([path]), policies=Policies(missing="keep"))
        assert (built.items, built.models) == (["q1", "q2"], ["m", "n"])
        np.testing.assert_array_equal(built.scores, [[1.0, 0.0], [np.nan, 0.5]])


def test_an_index_of_pandas_holds_the_ids(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"m": [1.0, 0.0], "n": [0.0, None]}, index=["q1", "q2"])
    for name in (None, "item"):
        path = tmp_path / f"{name}.parquet"
        frame.rename_axis(name).to_parquet(path)
        built = build_references(read_logs([path]), policies=Policies(missing="keep"))
        assert (built.items, built.models) == (["q1", "q2"], ["m", "n"])
        np.testing.assert_array_equal(built.scores, frame.to_numpy())


def test_cells_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("item_id,m\nq1,1\nq2,right\n")
    with pytest.raises(DataError, match="column 'm', row 2: .*'right'"):
        read(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("item_id,m,m\na,1,0\n", "columns named twice: 'm'"),
        ("item_id,m\na,1\na,0\n", "items listed twice: 'a'"),
        ("item_id,m\n,1\n", "blank"),
        ("item_id,m,n\na,1,0\nb,1\n", "row 2: 2 cells for 3 columns"),
        ("item_id,m\na,1,0\nb,1,0\n", "row 1: 3 cells for 2 columns"),
        ("item_id,m\na,1\nb,1,0\n", "row 2: 3 cells for 2 columns"),
        ("item,model,score,epoch\na,m,1,1.5\n", "'epoch': expected whole numbers"),
    ],
)
def test_tables_with_repeats_or_blanks_are_refused(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=reason):
        read(path)


def test_labels_of_proeval_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "x_predictions.csv"
    path.write_text(
        "index,prediction_a,label_a,prediction_b,label_b\n"
        '0,"x, y",0.0,SKIPPED,1.0\n1,,1.0,z,0.0\n'
    )
    assert detect(path) == "proeval"
    log = read(path)
    assert log.notes["empty or skipped predictions, scored as wrong"] == 2
    built = build_references(read_logs([path]))
    assert built.scores.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_formats_without_log_likelihoods_have_no_gold_probability(
    tmp_path: Path,
) -> None:
    path = tmp_path / "u_samples.jsonl"
    path.write_text(json.dumps(eee_row("a", 1.0)))
    with pytest.raises(DataError, match="no log-likelihoods"):
        read(path, value="gold-prob")
