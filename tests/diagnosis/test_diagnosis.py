from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from reference_faults import middling, planted, references, shuffled, sound

import gp_eval as ge
from gp_eval.data import References
from gp_eval.errors import DataError


def test_the_order_of_items_and_models_does_not_matter() -> None:
    table = references(planted())
    generator = np.random.default_rng(0)

    def summary(diagnosis: ge.Diagnosis) -> set:
        return {
            (f.kind, f.severity, frozenset(f.models), frozenset(f.items))
            for f in diagnosis.findings
        } | {frozenset(diagnosis.drop_models)}

    expected = summary(ge.check_references(table))
    assert len(expected) >= 6
    for _ in range(5):
        other = table.subset(
            items=list(generator.permutation(table.items)),
            models=list(generator.permutation(table.models)),
            missing="keep",
        )
        assert summary(ge.check_references(other)) == expected


def test_units_and_weights_do_not_matter() -> None:
    scores = planted()
    weights = np.random.default_rng(0).random(len(scores))
    one = ge.check_references(references(scores))
    other = ge.check_references(references(50.0 * scores - 80.0, item_weights=weights))
    assert [(f.kind, f.models, f.items) for f in one.findings] == [
        (f.kind, f.models, f.items) for f in other.findings
    ]


def test_the_cleaned_table_is_clean_and_otherwise_the_same() -> None:
    table = references(planted(), groups=["g"] * 400)
    diagnosis = ge.check_references(table)
    cleaned = diagnosis.cleaned(table)
    assert not set(cleaned.models) & set(diagnosis.drop_models)
    assert set(cleaned.models) | set(diagnosis.drop_models) == set(table.models)
    assert cleaned.frame.equals(table.frame[list(cleaned.models)])
    assert cleaned.groups == table.groups
    again = ge.check_references(cleaned)
    assert again.ok
    assert again.drop_models == ()
    assert cleaned.meta["dropped_by_check"]["models"] == list(diagnosis.drop_models)
    assert "dropped_by_check" not in table.meta


def test_items_that_only_dropped_models_have_are_not_lost_in_silence() -> None:
    scores = sound(600)
    k = middling(scores)
    changed = shuffled(scores, k)
    changed[:4] = np.nan
    changed[:4, k] = 1.0
    table = references(changed)
    diagnosis = ge.check_references(table)
    with pytest.raises(DataError, match="only dropped models have a score on 'q0'"):
        diagnosis.cleaned(table)
    assert len(diagnosis.cleaned(table, drop_items=True).items) == 596


def test_a_table_of_nothing_but_faults_cannot_be_cleaned() -> None:
    table = references(np.full((50, 3), 0.5))
    diagnosis = ge.check_references(table)
    assert not diagnosis.ok
    with pytest.raises(DataError, match="every model is to be dropped"):
        diagnosis.cleaned(table)


def test_the_record_is_json_with_stable_keys() -> None:
    record = ge.check_references(references(planted())).record
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert list(record) == [
        *("ok", "n_items", "n_models", "level", "reliability", "counts"),
        *("findings", "models", "drop_models", "drop_items"),
    ]
    for finding in record["findings"]:
        assert list(finding) == [
            *("kind", "severity", "text", "advice", "models", "items"),
            *("drop_models", "drop_items", "evidence"),
        ]
    severities = [finding["severity"] for finding in record["findings"]]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)


def test_arguments_are_checked() -> None:
    table = references(sound())
    with pytest.raises(ValueError, match="level: expected 0 < level < 0.5, got 0.5"):
        ge.check_references(table, level=0.5)
    with pytest.raises(DataError, match="keep: .*'nobody'"):
        ge.check_references(table, keep=["nobody"])


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("ifeval", {"unrelated-models"}),
        # Most models score little more there than random answers would.
        ("musr", {"unrelated-models", "random-models"}),
    ],
)
def test_a_shuffled_model_of_real_data_is_found(
    shared_data: Path, name: str, kinds: set[str]
) -> None:
    table = References.read(
        shared_data / f"benchpred_{name}.npz", duplicate_models="number"
    ).subset()
    ranked = np.argsort(table.performance.numpy())
    for share in (0.3, 0.6, 0.95):
        k = int(ranked[int(share * len(ranked))])
        scores = table.scores.numpy().copy()
        scores[:, k] = np.random.default_rng(0).permutation(scores[:, k])
        changed = References(scores, table.items, table.models)
        found = {f.kind: f for f in ge.check_references(changed).findings}
        named = [found[kind].models for kind in kinds & set(found)]
        assert named == [(table.models[k],)]


def test_all_real_data_can_be_checked_and_cleaned(shared_data: Path) -> None:
    verdicts = {}
    for path in sorted(shared_data.glob("*.npz")):
        table = References.read(path, missing="keep", duplicate_models="number")
        diagnosis = ge.check_references(table)
        verdicts[path.stem.removeprefix("benchpred_")] = {
            f.kind: f for f in diagnosis.findings
        }
        json.dumps(diagnosis.record, allow_nan=False)
        assert ge.check_references(diagnosis.cleaned(table)).ok
    # Constant answers of one label against those of the other.
    assert verdicts["rte"]["block"].evidence["opposed"]
    assert len(verdicts["rte"]["block"].models) >= 25
    # Models of random answers, at a quarter right.
    assert len(verdicts["commonsense"]["random-models"].models) == 5
    # One system solves tasks that no other does, and not those that most do.
    assert verdicts["terminalbench2"]["unrelated-models"].models == (
        "final_claude-4_5-sonnet_at_anthropic",
    )
    assert verdicts["livebench_sparse"]["missing-cells"].evidence["cells"] == 12_614
    for name in ("ifeval", "musr", "mmlu", "livebench", "swebench_verified"):
        assert not any(f.severity == "error" for f in verdicts[name].values())
