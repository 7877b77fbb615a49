"""References: what they accept, what they refuse, and what they promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from gp_eval.data import References
from gp_eval.errors import DataError, GpEvalError

NAN = math.nan
ITEMS = ["q1", "q2", "q3"]
MODELS = ["a", "b"]
SCORES = [[1.0, 0.0], [0.5, 0.25], [0.0, 1.0]]
# One gap each in the items q2 and q4; b and c have one, a has none.
GAPPY = [[1.0, 0.0, 0.5], [0.5, NAN, 1.0], [0.0, 1.0, 0.25], [0.75, 0.5, NAN]]
GAPPY_ITEMS = ["q1", "q2", "q3", "q4"]
GAPPY_MODELS = ["a", "b", "c"]


def make(**changes: Any) -> References:
    """Three items, two models, with anything replaced."""
    arguments: dict[str, Any] = {"scores": SCORES, "items": ITEMS, "models": MODELS}
    return References(**(arguments | changes))


def make_gappy(**changes: Any) -> References:
    arguments: dict[str, Any] = {
        "scores": GAPPY,
        "items": GAPPY_ITEMS,
        "models": GAPPY_MODELS,
    }
    return References(**(arguments | changes))


def full(**changes: Any) -> References:
    """Everything that references can hold, each value different."""
    generator = np.random.default_rng(0)
    arguments: dict[str, Any] = {
        "item_weights": [1.0, 2.0, 5.0],
        "groups": ["x", "y", "x"],
        "probabilities": generator.random((2, 3, 4)).astype(np.float16),
        "labels": np.array([3, 0, 2]),
        "meta": {"metric": "acc"},
    }
    return make(**(arguments | changes))


# What is held


@pytest.mark.parametrize(
    "scores",
    [
        SCORES,
        np.array(SCORES),
        np.array(SCORES, dtype=np.float32),
        np.asfortranarray(SCORES),
        torch.tensor(SCORES),
        torch.tensor(SCORES, dtype=torch.float64, requires_grad=True),
    ],
)
def test_scores_of_any_array_type_become_a_float64_tensor(scores: Any) -> None:
    held = make(scores=scores).scores
    assert held.dtype == torch.float64
    assert held.tolist() == SCORES


def test_integer_and_boolean_scores_are_numbers() -> None:
    binary = np.array([[1, 0], [0, 0], [1, 1]], dtype=np.uint8)
    assert make(scores=binary).scores.tolist() == binary.tolist()
    assert make(scores=binary.astype(bool)).scores.tolist() == binary.tolist()


def test_scores_are_a_copy_of_what_was_passed() -> None:
    array, tensor = np.array(SCORES), torch.tensor(SCORES, dtype=torch.float64)
    from_array, from_tensor = make(scores=array), make(scores=tensor)
    array[:] = -1.0
    tensor[:] = -1.0
    assert from_array.scores.tolist() == SCORES
    assert from_tensor.scores.tolist() == SCORES


def test_ids_become_tuples_of_strings() -> None:
    references = make(items=[1, 2, 3], models=np.array(["a", "b"]))
    assert references.items == ("1", "2", "3")
    assert references.models == ("a", "b")
    assert {type(i) for i in references.items + references.models} == {str}


def test_meta_is_a_copy_and_empty_by_default() -> None:
    meta = {"metric": "acc"}
    references = make(meta=meta)
    meta["metric"] = "changed"
    assert references.meta == {"metric": "acc"}
    assert make().meta == {}


def test_the_frame_has_items_as_index_and_models_as_columns() -> None:
    frame = make().frame
    assert list(frame.index) == ITEMS
    assert list(frame.columns) == MODELS
    assert frame.to_numpy().tolist() == SCORES
    assert References.from_frame(frame).fingerprint == make().fingerprint


def test_from_frame_passes_everything_on() -> None:
    frame = pd.DataFrame(GAPPY, index=[10, 20, 30, 40], columns=["a", "b", "a"])
    references = References.from_frame(
        frame,
        item_weights=[1, 1, 1, 5],
        groups=["x", "y", "z", "x"],
        meta={"task": "t"},
        missing="keep",
        duplicate_models="number",
    )
    assert references.items == ("10", "20", "30", "40")
    assert references.models == ("a", "b", "a#2")
    assert references.item_weights.tolist() == [0.125, 0.125, 0.125, 0.625]
    assert references.groups == ("x", "y", "z", "x")
    assert references.meta == {"task": "t"}
    assert references.n_missing == 2


def test_from_frame_takes_nullable_and_boolean_columns() -> None:
    frame = pd.DataFrame(
        {"a": pd.array([1, None], dtype="Int64"), "b": [True, False]},
        index=["q1", "q2"],
    )
    references = References.from_frame(frame, missing="keep")
    assert references.scores.nan_to_num(-1.0).tolist() == [[1.0, 1.0], [-1.0, 0.0]]


def test_from_frame_with_text_columns_says_that_ids_are_the_index() -> None:
    frame = make().frame.reset_index()
    with pytest.raises(DataError, match="item ids must be the index"):
        References.from_frame(frame)


def test_the_performance_is_the_weighted_mean_of_each_model() -> None:
    assert make().performance.tolist() == pytest.approx([0.5, 1.25 / 3])
    weighted = make(item_weights=[1, 1, 2])
    assert weighted.performance.tolist() == pytest.approx([0.375, 0.5625])


def test_the_printed_form_tells_the_sizes() -> None:
    printed = repr(make_gappy(missing="keep", item_weights=[1, 2, 3, 4]))
    assert printed == "References(items=4, models=3, missing=2, weighted=True)"


# Ids


@pytest.mark.parametrize("name", ["items", "models"])
def test_repeated_ids_are_refused_and_named(name: str) -> None:
    ids = {"items": ["q1", "twin", "twin"], "models": ["twin", "twin"]}[name]
    with pytest.raises(DataError, match=f"{name}: .*'twin'"):
        make(**{name: ids})


def test_ids_that_are_equal_as_strings_are_repeated() -> None:
    with pytest.raises(DataError, match="'7'"):
        make(items=[7, "7", "x"])


def test_many_repeated_ids_are_cut_short_with_their_number() -> None:
    items = [f"q{i // 2}" for i in range(16)]
    with pytest.raises(DataError, match="'q0', 'q1', .*'q4' and 3 more"):
        make(scores=np.zeros((16, 2)), items=items)


@pytest.mark.parametrize("name", ["items", "models"])
def test_one_string_is_not_a_sequence_of_ids(name: str) -> None:
    with pytest.raises(DataError, match=f"{name}: .*'ab'"):
        make(scores=np.zeros((2, 2)), **({"items": ["x", "y"]} | {name: "ab"}))


def test_repeated_models_can_be_numbered() -> None:
    references = make(
        scores=np.zeros((3, 4)),
        models=["x", "y", "x", "x"],
        duplicate_models="number",
    )
    assert references.models == ("x", "y", "x#2", "x#3")


def test_the_refusal_of_repeated_models_tells_of_numbering() -> None:
    with pytest.raises(DataError, match="duplicate_models='number'"):
        make(models=["x", "x"])


def test_a_number_that_is_taken_is_refused_and_named() -> None:
    with pytest.raises(DataError, match="'x#2'"):
        make(
            scores=np.zeros((3, 3)),
            models=["x", "x#2", "x"],
            duplicate_models="number",
        )


def test_repeated_items_are_not_numbered() -> None:
    with pytest.raises(DataError, match="items: .*'q1'"):
        make(items=["q1", "q1", "q2"], duplicate_models="number")


def test_an_unknown_policy_for_repeated_models_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DataError, match=r"\['error', 'number'\], got 'keep'"):
        make(duplicate_models="keep")


# Scores


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_scores_are_refused_and_their_items_named(value: float) -> None:
    with pytest.raises(DataError, match="finite scores, infinite on 'q2'$"):
        make(scores=[[1.0, 0.0], [0.5, value], [0.0, 1.0]], missing="keep")


@pytest.mark.parametrize(
    ("shape", "ids"),
    [
        ((0, 2), {"items": []}),
        ((3, 0), {"models": []}),
        ((0, 0), {"items": [], "models": []}),
    ],
)
def test_an_empty_table_is_refused(
    shape: tuple[int, int], ids: dict[str, list[str]]
) -> None:
    with pytest.raises(DataError, match="at least 1 item and 1 reference model"):
        make(scores=np.zeros(shape), **ids)


def test_one_item_and_one_model_are_enough() -> None:
    references = make(scores=[[0.5]], items=["q"], models=["m"])
    assert references.performance.tolist() == [0.5]


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (3, 2, 1), (6,)])
def test_scores_of_another_shape_are_refused_with_both_shapes(
    shape: tuple[int, ...],
) -> None:
    with pytest.raises(DataError, match=r"shape \(3, 2\) \(items x models\), got \("):
        make(scores=np.zeros(shape))


@pytest.mark.parametrize(
    "scores",
    [
        [[1.0, 0.0], [0.5], [0.0, 1.0]],
        [["one", "two"], ["x", "y"], ["z", ""]],
        [[{}, {}], [{}, {}], [{}, {}]],
    ],
)
def test_scores_that_are_not_a_table_of_numbers_are_refused(scores: Any) -> None:
    with pytest.raises(DataError, match="scores: expected numbers"):
        make(scores=scores)


@pytest.mark.parametrize("missing", ["error", "keep", "drop-items", "mean"])
def test_an_item_without_any_score_is_refused_and_named(missing: Any) -> None:
    with pytest.raises(DataError, match="no reference model has a score on 'q3'$"):
        make(scores=[[1.0, 0.0], [0.5, NAN], [NAN, NAN]], missing=missing)


def test_data_errors_are_errors_of_ours_and_value_errors() -> None:
    assert issubclass(DataError, GpEvalError)
    assert issubclass(DataError, ValueError)


# Missing cells


def test_missing_cells_are_refused_by_default_with_count_items_and_choices() -> None:
    with pytest.raises(DataError, match="2 missing cells, on items 'q2', 'q4'; ") as e:
        make_gappy()
    for policy in ("drop-items", "drop-models", "mean"):
        assert policy in str(e.value)


def test_missing_cells_can_be_kept() -> None:
    references = make_gappy(missing="keep")
    assert references.n_missing == 2
    assert np.array_equal(references.scores.numpy(), GAPPY, equal_nan=True)
    assert references.meta == {}


def test_items_with_missing_cells_can_be_dropped() -> None:
    references = make_gappy(missing="drop-items", item_weights=[1, 7, 3, 9])
    assert references.items == ("q1", "q3")
    assert references.models == ("a", "b", "c")
    assert references.scores.tolist() == [[1.0, 0.0, 0.5], [0.0, 1.0, 0.25]]
    assert references.item_weights.tolist() == pytest.approx([0.25, 0.75])


def test_models_with_missing_cells_can_be_dropped() -> None:
    references = make_gappy(missing="drop-models")
    assert references.items == ("q1", "q2", "q3", "q4")
    assert references.models == ("a",)
    assert references.scores.tolist() == [[1.0], [0.5], [0.0], [0.75]]


def test_missing_cells_can_take_the_mean_of_the_item() -> None:
    references = make_gappy(missing="mean")
    assert references.n_missing == 0
    assert references.scores.tolist() == [
        [1.0, 0.0, 0.5],
        [0.5, 0.75, 1.0],
        [0.0, 1.0, 0.25],
        [0.75, 0.5, 0.625],
    ]


@pytest.mark.parametrize("policy", ["drop-items", "drop-models", "mean"])
def test_a_policy_that_acted_leaves_its_name_and_the_count_in_meta(policy: Any) -> None:
    meta = {"metric": "acc"}
    references = make_gappy(missing=policy, meta=meta)
    note = {"policy": policy, "cells": 2}
    assert references.meta == {"metric": "acc", "missing": note}
    assert meta == {"metric": "acc"}


@pytest.mark.parametrize("policy", ["error", "keep", "drop-items", "drop-models"])
def test_complete_scores_are_the_same_under_every_policy(policy: Any) -> None:
    assert make(missing=policy).fingerprint == make().fingerprint
    assert make(missing=policy).meta == {}


def test_dropping_keeps_groups_probabilities_and_labels_in_step() -> None:
    probabilities = torch.arange(24.0).reshape(3, 4, 2)
    everything = make_gappy(
        missing="keep",
        groups=["w", "x", "y", "z"],
        probabilities=probabilities,
        labels=torch.tensor([0, 1, 1, 0]),
    )
    arguments = {
        "groups": everything.groups,
        "probabilities": probabilities,
        "labels": everything.labels,
    }
    by_item = make_gappy(missing="drop-items", **arguments)
    assert by_item.groups == ("w", "y")
    assert by_item.labels is not None
    assert by_item.labels.tolist() == [0, 1]
    assert by_item.probabilities is not None
    assert torch.equal(by_item.probabilities, probabilities[:, [0, 2]])
    by_model = make_gappy(missing="drop-models", **arguments)
    assert by_model.groups == ("w", "x", "y", "z")
    assert by_model.probabilities is not None
    assert torch.equal(by_model.probabilities, probabilities[:1])


@pytest.mark.parametrize("policy", ["drop-items", "drop-models"])
def test_dropping_everything_is_refused(policy: Any) -> None:
    with pytest.raises(DataError, match=f"missing='{policy}': no complete"):
        make(scores=[[1.0, NAN], [NAN, 0.0], [NAN, 1.0]], missing=policy)


@pytest.mark.parametrize("scores", [GAPPY, np.zeros((4, 3))])
def test_an_unknown_policy_is_refused_whether_or_not_it_is_needed(scores: Any) -> None:
    with pytest.raises(DataError, match="'drop-models', 'mean'.*, got 'median'"):
        make_gappy(scores=scores, missing="median")


# Weights


def test_items_have_equal_weights_by_default() -> None:
    assert make().item_weights.tolist() == [1 / 3] * 3
    assert not make().is_weighted


@pytest.mark.parametrize(
    "weights",
    [[1, 3, 4], [0.25, 0.75, 1.0], np.array([2, 6, 8]), torch.tensor([1, 3, 4])],
)
def test_weights_are_rescaled_to_sum_to_1(weights: Any) -> None:
    references = make(item_weights=weights)
    assert references.item_weights.dtype == torch.float64
    assert references.item_weights.tolist() == [0.125, 0.375, 0.5]
    assert references.is_weighted


@pytest.mark.parametrize("n_items", [3, 6, 7, 23, 49])
def test_equal_weights_are_the_plain_mean_to_the_last_bit(n_items: int) -> None:
    scores = np.random.default_rng(0).random((n_items, 2))
    ids = [f"q{i}" for i in range(n_items)]
    plain = References(scores, ids, MODELS)
    equal = References(scores, ids, MODELS, item_weights=[0.1] * n_items)
    assert not equal.is_weighted
    assert torch.equal(equal.item_weights, plain.item_weights)
    assert equal.fingerprint == plain.fingerprint


def test_a_weight_may_be_zero() -> None:
    assert make(item_weights=[0, 1, 1]).item_weights.tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("bad", [-1.0, NAN, math.inf])
def test_weights_that_are_not_finite_or_negative_are_refused_and_named(
    bad: float,
) -> None:
    with pytest.raises(DataError, match="item_weights: .* not so for 'q2'$"):
        make(item_weights=[1.0, bad, 1.0])


@pytest.mark.parametrize("weights", [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], 1.0, []])
def test_weights_of_another_shape_are_refused(weights: Any) -> None:
    with pytest.raises(DataError, match=r"item_weights: expected one per item \(3\)"):
        make(item_weights=weights)


def test_weights_that_are_all_zero_are_refused() -> None:
    with pytest.raises(DataError, match="item_weights: expected a positive sum"):
        make(item_weights=[0, 0, 0])


@pytest.mark.parametrize("weights", ["abc", ["a", "b", "c"], [1, None, 2]])
def test_weights_that_are_not_numbers_are_refused(weights: Any) -> None:
    with pytest.raises(DataError, match="item_weights"):
        make(item_weights=weights)


# Groups, probabilities, labels


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_groups_may_repeat_and_become_strings(kind: Any) -> None:
    assert make(groups=kind(["x", "y", "x"])).groups == ("x", "y", "x")
    assert make(groups=kind([1, 2, 1])).groups == ("1", "2", "1")


@pytest.mark.parametrize("groups", [["x"], ["x"] * 4, []])
def test_groups_of_another_number_are_refused(groups: list[str]) -> None:
    number = len(groups)
    with pytest.raises(DataError, match=rf"per item \(3\), got {number}"):
        make(groups=groups)


def test_one_string_is_not_a_sequence_of_groups() -> None:
    with pytest.raises(DataError, match="groups: .*'abc'"):
        make(groups="abc")


def test_probabilities_keep_their_precision() -> None:
    references = full()
    assert references.probabilities is not None
    assert references.probabilities.dtype == torch.float16
    assert references.probabilities.shape == (2, 3, 4)


@pytest.mark.parametrize(
    "shape", [(3, 2, 4), (2, 3), (2, 4, 4), (1, 3, 4), (2, 3, 4, 1)]
)
def test_probabilities_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"probabilities: .*\(2, 3\) \+ \(C,\), got \("):
        make(probabilities=np.zeros(shape))


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), ()])
def test_labels_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"labels: expected shape \(3,\), got \("):
        make(labels=np.zeros(shape, dtype=int))


# Parts


def test_a_subset_has_the_given_ids_in_the_given_order() -> None:
    references = full()
    part = references.subset(models=["b", "a"], items=["q3", "q1"])
    assert part.models == ("b", "a")
    assert part.items == ("q3", "q1")
    assert part.scores.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert part.groups == ("x", "x")
    assert part.item_weights.tolist() == pytest.approx([5 / 6, 1 / 6])
    assert part.meta == references.meta
    assert part.labels is not None
    assert part.labels.tolist() == [2, 3]
    assert part.probabilities is not None
    assert references.probabilities is not None
    expected = references.probabilities[[1, 0]][:, [2, 0]]
    assert torch.equal(part.probabilities, expected)


def test_a_subset_of_unweighted_items_is_unweighted() -> None:
    part = make().subset(items=["q1", "q2"])
    assert not part.is_weighted
    assert part.item_weights.tolist() == [0.5, 0.5]


def test_a_subset_of_nothing_named_is_the_whole() -> None:
    references = full()
    whole = references.subset()
    assert whole.fingerprint == references.fingerprint
    assert whole.groups == references.groups


def test_a_subset_is_independent_of_the_whole() -> None:
    references = full()
    part = references.subset()
    part.scores[:] = -1.0
    part.meta["metric"] = "changed"
    assert references.scores.tolist() == SCORES
    assert references.meta == {"metric": "acc"}


@pytest.mark.parametrize("name", ["items", "models"])
def test_a_subset_names_the_unknown_ids(name: str) -> None:
    known = {"items": "q1", "models": "a"}[name]
    with pytest.raises(DataError, match=f"{name}: not in these references: 'z', 'w'$"):
        make().subset(**{name: [known, "z", "w"]})


@pytest.mark.parametrize("name", ["items", "models"])
def test_a_subset_refuses_repeated_ids_a_string_and_nothing(name: str) -> None:
    known = {"items": "q1", "models": "a"}[name]
    with pytest.raises(DataError, match=f"{name}: .*repeated: '{known}'"):
        make().subset(**{name: [known, known]})
    with pytest.raises(DataError, match=f"{name}: .*string"):
        make().subset(**{name: known})
    with pytest.raises(DataError, match=f"{name}: .*at least one"):
        make().subset(**{name: []})


def test_a_subset_treats_missing_cells_as_told() -> None:
    references = make_gappy(missing="keep")
    with pytest.raises(DataError, match="1 missing cells, on items 'q2'"):
        references.subset(models=["a", "b"])
    assert references.subset(models=["a", "b"], missing="keep").n_missing == 1
    kept = references.subset(models=["a", "b"], missing="drop-items")
    assert kept.items == ("q1", "q3", "q4")
    with pytest.raises(DataError, match="has a score on 'q2'"):
        references.subset(models=["b"], missing="keep")


def test_without_removes_the_given_models_and_keeps_the_order() -> None:
    references = make_gappy(missing="keep")
    rest = references.without(["b"])
    assert rest.models == ("a", "c")
    assert rest.items == references.items
    expected = references.scores[:, [0, 2]]
    assert torch.equal(rest.scores.nan_to_num(-1), expected.nan_to_num(-1))


def test_without_names_unknown_models() -> None:
    with pytest.raises(DataError, match="models: not in these references: 'z'$"):
        make().without(["a", "z"])


def test_without_all_models_is_refused() -> None:
    with pytest.raises(DataError, match="leaves no reference"):
        make().without(["b", "a"])


# Fingerprint


def test_the_fingerprint_is_a_sha256_and_repeatable() -> None:
    fingerprint = make().fingerprint
    assert len(bytes.fromhex(fingerprint)) == 32
    assert make().fingerprint == fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"items": ["q1", "q2", "q4"]},
        {"items": ["q2", "q1", "q3"]},
        {"models": ["a", "c"]},
        {"models": ["b", "a"]},
        {"scores": [[1.0, 0.0], [0.5, 0.25 + 2**-54], [0.0, 1.0]]},
        {"scores": [[1.0, 0.0], [0.5, NAN], [0.0, 1.0]], "missing": "keep"},
        {"item_weights": [1, 1, 1 + 1e-12]},
        {"items": ["q1", "q2", "q3a"], "models": ["", "b"]},
    ],
)
def test_the_fingerprint_changes_with_ids_scores_and_weights(
    changes: dict[str, Any],
) -> None:
    assert make(**changes).fingerprint != make().fingerprint


def test_the_fingerprint_keeps_ids_apart_from_each_other() -> None:
    scores = np.zeros((2, 1))
    left = References(scores, ["ab", "c"], ["m"])
    right = References(scores, ["a", "bc"], ["m"])
    assert left.fingerprint != right.fingerprint


def test_the_fingerprint_does_not_change_with_anything_else() -> None:
    expected = make(item_weights=[1.0, 2.0, 5.0]).fingerprint
    assert full().fingerprint == expected
    assert full(meta={"metric": "other", "missing": 3}).fingerprint == expected


def test_the_fingerprint_takes_minus_zero_for_zero() -> None:
    negative = make(scores=[[1.0, -0.0], [0.5, 0.25], [-0.0, 1.0]])
    assert negative.fingerprint == make().fingerprint


def test_the_fingerprint_does_not_depend_on_the_memory_order() -> None:
    assert make(scores=np.asfortranarray(SCORES)).fingerprint == make().fingerprint


@pytest.mark.parametrize("seed", range(10))
def test_building_from_the_weights_of_references_changes_nothing(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ids = [f"q{i}" for i in range(37)]
    scores, weights = generator.random((37, 2)), generator.random(37)
    first = References(scores, ids, MODELS, item_weights=weights)
    again = References(scores, ids, MODELS, item_weights=first.item_weights)
    assert torch.equal(again.item_weights, first.item_weights)
    assert again.fingerprint == first.fingerprint
