"""JSON of the right shape with odd values in it: read, or refused as any other."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from logs import choice_row, inspect_header, inspect_sample, lm_row, write_lm_eval

from gp_eval.errors import DataError
from gp_eval.readers import Options, Policies, build_references, read_logs
from gp_eval.readers.records import Value

ODD = [None, True, -1, 1e300, "", "x", [], [[]], {}, {"a": [1]}, float("nan")]


def mutated(value: Any, rng: random.Random) -> Any:
    """A JSON value with one of its parts replaced by something odd."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
        return rng.choice(ODD)
    copy = value.copy()
    key = (
        rng.choice(list(value))
        if isinstance(value, dict)
        else rng.randrange(len(value))
    )
    if isinstance(value, dict) and rng.random() < 0.15:
        del copy[key]
    else:
        copy[key] = mutated(value[key], rng)
    return copy


def json_logs() -> dict[str, tuple[str, Any]]:
    """A name and a document for each format that is JSON."""
    row = choice_row(0, [-1.0, -2.0], "0", acc=1.0, em=0.5)
    sample = inspect_sample("a", {"x": 1, "y": "C"}) | {"uuid": "u"}
    stat = {"name": {"name": "em", "split": "test"}, "count": 1, "mean": 1.0}
    return {
        "lm-eval": ("samples_t_2026-01-01T00-00-00.json", [row, row | {"doc_id": 1}]),
        "lm-eval 0.3": ("t_write_out_info.json", [row | {"logit_0": -1.0, "truth": 0}]),
        "inspect": ("a.json", inspect_header() | {"samples": [sample]}),
        "helm": (
            "per_instance_stats.json",
            [{"instance_id": "a", "train_trial_index": 0, "stats": [stat]}],
        ),
        "helm display": (
            "display_predictions.json",
            [{"instance_id": "a", "train_trial_index": 0, "stats": {"em": 1.0}}],
        ),
        "eee": (
            "u_samples.jsonl",
            {
                **{"evaluation_id": "e", "model_id": "m", "evaluation_name": "b"},
                **{"sample_id": "a", "evaluation": {"score": 1.0}},
            },
        ),
    }


@pytest.mark.parametrize("value", ["score", "gold-prob"])
@pytest.mark.parametrize("kind", json_logs())
def test_odd_values_anywhere_end_in_no_other_error(
    tmp_path: Path, kind: str, value: Value
) -> None:
    name, document = json_logs()[kind]
    rng = random.Random(3)
    refused = 0
    for _ in range(300):
        (tmp_path / name).write_text(json.dumps(mutated(document, rng)))
        try:
            collection = read_logs(
                [tmp_path / name],
                format=kind.split()[0],
                options=Options(value=value),
            )
            build_references(collection, policies=Policies(on_error="skip"))
        except DataError:
            refused += 1
    assert refused > 50


def test_odd_values_in_results_files_end_in_no_other_error(tmp_path: Path) -> None:
    document = {
        "results": {"task": {"em,none": 1.0}},
        "configs": {"task": {"metric_list": [{"metric": "em", "aggregation": "mean"}]}},
        "group_subtasks": {"g": ["task"]},
        "higher_is_better": {"task": {"em": True}},
        "n-samples": {"task": {"original": 1, "effective": 1}},
        "n-shot": {"task": 0},
        "config": {"model_args": {"pretrained": "o/m"}, "limit": None},
    }
    rng = random.Random(4)
    path = write_lm_eval(tmp_path, [lm_row(0, em=1.0)], results=document)
    read_ones = 0
    for i in range(300):
        # A folder of its own: results files are remembered by their folder.
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / path.name).write_bytes(path.read_bytes())
        results = folder / path.name.replace("samples_task", "results")
        results.with_suffix(".json").write_text(json.dumps(mutated(document, rng)))
        try:
            build_references(read_logs([folder]))
            read_ones += 1
        except DataError:
            continue
    assert read_ones > 100


def test_an_epoch_beyond_all_whole_numbers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("model,item,epoch,score\nm,a,1e30,1\nm,b,1,0\n")
    with pytest.raises(DataError, match="epoch"):
        read_logs([path])
