from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from populations import answers
from reference_faults import findings, middling, references, shuffled, sound

import gp_eval as ge
from gp_eval.errors import DataError


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
