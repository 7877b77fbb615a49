from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from populations import answers

import gp_eval as ge
from gp_eval.data import References
from gp_eval.errors import DataError


def references(scores: np.ndarray, **options: object) -> References:
    items = [f"q{i}" for i in range(len(scores))]
    models = [f"m{k}" for k in range(scores.shape[1])]
    return References(scores, items, models, missing="keep", **options)


def sound(n_items: int = 300, n_models: int = 40, seed: int = 0) -> np.ndarray:
    return answers(n_items, n_models, seed=seed, discrimination=1.5)


def findings(scores: np.ndarray, **options: object) -> dict[str, ge.Diagnosis]:
    found = ge.check_references(references(scores), **options).findings
    kinds = Counter(finding.kind for finding in found)
    assert max(kinds.values(), default=1) == 1
    return {finding.kind: finding for finding in found}


def shuffled(scores: np.ndarray, *models: int) -> np.ndarray:
    changed = scores.copy()
    for k in models:
        changed[:, k] = np.random.default_rng(k).permutation(scores[:, k])
    return changed


def middling(scores: np.ndarray) -> int:
    return int(np.argsort(scores.mean(0))[scores.shape[1] // 2])


@pytest.mark.parametrize("guess", [0.0, 0.25, 0.5])
def test_clean_answers_give_no_error_at_the_level(guess: float) -> None:
    wrong = Counter()
    for seed in range(60):
        scores = answers(200, 25, seed=seed, guess=guess)
        diagnosis = ge.check_references(references(scores))
        wrong.update(finding.kind for finding in diagnosis.of("error"))
    # 0.6 are expected of each kind; more than 4 has probability 0.0004.
    assert all(count <= 4 for count in wrong.values()), wrong
    assert sum(wrong.values()) <= 5


@pytest.mark.parametrize("shape", [(20, 3), (10, 10), (1, 5), (2, 2), (50, 2)])
def test_small_clean_tables_give_no_error(shape: tuple[int, int]) -> None:
    for seed in range(40):
        diagnosis = ge.check_references(references(answers(*shape, seed=seed)))
        assert diagnosis.ok, diagnosis.findings


def test_a_shuffled_model_is_named() -> None:
    scores = sound()
    k = middling(scores)
    found = findings(shuffled(scores, k))["unrelated-models"]
    assert found.severity == "error"
    assert found.models == found.drop_models == (f"m{k}",)
    assert abs(found.evidence["correlation"][f"m{k}"]) < 0.2
    assert found.evidence["expected"][f"m{k}"] > 0.3


def test_a_flipped_model_is_named_and_said_to_be_flipped() -> None:
    scores = sound()
    k = middling(scores)
    scores[:, k] = 1.0 - scores[:, k]
    found = findings(scores)["anticorrelated-models"]
    assert found.models == found.drop_models == (f"m{k}",)
    assert found.evidence["mirrored"] == [f"m{k}"]
    assert f"turned over, 'm{k}'" in found.advice


@pytest.mark.parametrize(
    ("value", "severity"), [(0.5, "error"), (0.0, "error"), (1.0, "error")]
)
def test_a_constant_model_is_named(value: float, severity: str) -> None:
    scores = sound(600)
    scores[:, 7] = value
    found = findings(scores)["constant-models"]
    assert (found.severity, found.models) == (severity, ("m7",))
    assert found.evidence == {"score": {"m7": value}}


def test_no_right_answer_among_a_few_hard_items_is_plausible() -> None:
    scores = answers(15, 12, seed=0)
    scores[:, 0] = 0.0
    assert findings(scores)["constant-models"].severity == "warning"


def test_a_random_model_is_a_warning_if_it_scores_as_low_as_the_weakest() -> None:
    scores = answers(400, 30, seed=0, guess=0.25)
    scores[:, 3] = np.random.default_rng(0).random(400) < 0.25
    found = findings(scores)
    assert "m3" in found["random-models"].drop_models
    assert found["random-models"].severity == "warning"
    assert "unrelated-models" not in found


def test_two_item_orders_are_blocks_and_the_larger_is_kept() -> None:
    scores = sound(500)
    order = np.random.default_rng(0).permutation(500)
    scores[:, :15] = scores[order, :15]
    diagnosis = ge.check_references(references(scores))
    (block,) = [f for f in diagnosis.findings if f.kind == "block"]
    assert block.severity == "error"
    assert set(block.models) <= {f"m{k}" for k in range(15)}
    assert len(block.models) >= 12
    assert set(diagnosis.drop_models) <= {f"m{k}" for k in range(15)}
    assert {s.block for s in diagnosis.models} <= {0, 1, None}


def test_the_block_of_a_model_to_keep_is_kept() -> None:
    scores = sound(500)
    order = np.random.default_rng(0).permutation(500)
    scores[:, :15] = scores[order, :15]
    table = references(scores)
    smaller = next(
        f for f in ge.check_references(table).findings if f.kind == "block"
    ).models
    diagnosis = ge.check_references(table, keep=smaller[:1])
    assert not set(smaller) & set(diagnosis.drop_models)
    assert len(diagnosis.drop_models) >= 20
    with pytest.raises(DataError, match="keep: expected models of one block"):
        ge.check_references(table, keep=[smaller[0], "m30", "m31", "m32", "m33"])


def test_a_model_to_keep_is_named_but_not_dropped() -> None:
    scores = sound()
    k = middling(scores)
    changed = shuffled(scores, k)
    changed[:, (k + 1) % 40] = changed[:, (k + 2) % 40]
    copies = (f"m{(k + 1) % 40}", f"m{(k + 2) % 40}")
    diagnosis = ge.check_references(references(changed), keep=[f"m{k}", *copies])
    assert not diagnosis.ok
    assert diagnosis.drop_models == ()


def test_copies_are_named_and_one_of_each_is_kept() -> None:
    scores = sound()
    scores[:, 5] = scores[:, 30]
    scores[:, 9] = scores[:, 30]
    scores[:3, 9] = 1.0 - scores[:3, 9]
    found = findings(scores)["duplicate-models"]
    assert found.severity == "warning"
    (group,) = found.evidence["groups"]
    assert set(group["models"]) == {"m5", "m9", "m30"}
    assert not group["equal"]
    assert set(found.drop_models) == {"m5", "m9"}


def test_copies_of_a_faulty_model_are_faulty() -> None:
    scores = sound()
    k = middling(scores)
    changed = shuffled(scores, k)
    changed[:, (k + 1) % 40] = changed[:, k]
    found = findings(changed)["unrelated-models"]
    assert set(found.models) == {f"m{k}", f"m{(k + 1) % 40}"}


def test_a_mis_keyed_item_is_named_and_dropped_on_request_only() -> None:
    scores = answers(200, 300, seed=0, discrimination=2.0)
    item = int(np.argmin(np.abs(scores.mean(1) - 0.5)))
    scores[item] = 1.0 - scores[item]
    table = references(scores)
    diagnosis = ge.check_references(table)
    assert diagnosis.ok
    assert diagnosis.drop_items == (f"q{item}",)
    assert f"q{item}" in diagnosis.cleaned(table).items
    cleaned = diagnosis.cleaned(table, drop_items=True)
    assert f"q{item}" not in cleaned.items
    assert cleaned.meta["dropped_by_check"] == {"models": [], "items": [f"q{item}"]}


def test_items_all_agree_on_are_counted() -> None:
    scores = sound()
    scores[:6], scores[6:8] = 1.0, 0.0
    found = findings(scores)["unanimous-items"]
    assert found.severity == "note"
    assert set(found.items) >= {f"q{i}" for i in range(8)}
    assert found.evidence["at_best"] >= 6
    assert found.evidence["count"] == len(found.items)


def test_missing_cells_are_counted_and_what_each_policy_leaves() -> None:
    scores = sound()
    scores[:40, 0], scores[20:50, 1] = np.nan, np.nan
    found = findings(scores)["missing-cells"]
    assert found.evidence == {
        "cells": 70,
        "share": 70 / 12_000,
        "complete_items": 250,
        "complete_models": 38,
        "by_model": {"m0": 40, "m1": 30},
    }
    assert "drop-items leaves 250 of 300 items" in found.advice


def test_a_model_without_any_score_is_an_error() -> None:
    scores = sound()
    scores[:, 4] = np.nan
    diagnosis = ge.check_references(references(scores))
    assert diagnosis.of("error")[0].kind == "empty-models"
    assert diagnosis.drop_models == ("m4",)


def test_faults_are_found_beside_gaps() -> None:
    scores = sound()
    k = middling(scores)
    changed = shuffled(scores, k)
    changed[np.random.default_rng(0).random(changed.shape) < 0.1] = np.nan
    assert findings(changed)["unrelated-models"].models == (f"m{k}",)


def test_a_table_without_any_order_is_an_error_and_nothing_is_dropped() -> None:
    changed = shuffled(sound(), *range(40))
    diagnosis = ge.check_references(references(changed))
    assert [f.kind for f in diagnosis.of("error")] == ["no-agreement"]
    assert diagnosis.drop_models == ()


def test_the_references_that_are_needed_follow_spearman_and_brown() -> None:
    found = findings(answers(400, 6, seed=0))["few-references"]
    alpha, needed = found.evidence["reliability"], found.evidence["needed"]
    single = alpha / (6 - 5 * alpha)

    def of(count: int) -> float:
        return count * single / (1 + (count - 1) * single)

    assert of(6) == pytest.approx(alpha, rel=1e-10)
    assert of(needed) >= 0.7 > of(needed - 1)


@pytest.mark.parametrize("n_models", [1, 2])
def test_too_few_models_to_check_is_a_warning(n_models: int) -> None:
    diagnosis = ge.check_references(references(answers(50, n_models)))
    assert diagnosis.ok
    assert "few-references" in {f.kind for f in diagnosis.of("warning")}


def test_two_references_that_contradict_each_other_are_both_kept() -> None:
    scores = answers(100, 1)
    diagnosis = ge.check_references(references(np.hstack([scores, 1.0 - scores])))
    assert [f.kind for f in diagnosis.of("error")] == ["anticorrelated-models"]
    assert diagnosis.drop_models == ()


def planted() -> np.ndarray:
    scores = sound(400)
    changed = shuffled(scores, middling(scores))
    changed[:, 3] = 1.0 - changed[:, 3]
    changed[:, 11] = changed[:, 12]
    changed[:, 20] = 0.0
    changed[:30, 30] = np.nan
    return changed


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
