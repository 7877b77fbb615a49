from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gp_eval.data.metadata import gower_similarity, weights_from_metadata
from gp_eval.errors import DataError

FRAME = pd.DataFrame(
    {
        "size": [7.0, 70.0, 14.0, 1.0],
        "layers": [32, 80, 40, 16],
        "family": ["llama", "llama", "qwen", "gpt"],
        "chat": [True, False, True, False],
        "released": pd.to_datetime(
            ["2024-01-01", "2024-07-01", "2025-01-01", "2023-06-01"]
        ),
    },
    index=["a", "b", "c", "d"],
)
TARGET = {
    "size": 8.0,
    "layers": 32,
    "family": "llama",
    "chat": True,
    "released": pd.Timestamp("2024-04-18"),
}


def by_loops(frame: pd.DataFrame, target: dict, importance: dict) -> list[float]:
    """Gower (1971), cell by cell, without missing values."""
    result = []
    for k in range(len(frame)):
        total = value = 0.0
        for name in frame.columns:
            if name in ("family", "chat"):
                share = 1.0 if frame[name].iloc[k] == target[name] else 0.0
            else:
                every = [*frame[name], target[name]]
                if name == "released":
                    every = [x.timestamp() for x in every]
                share = 1 - abs(every[k] - every[-1]) / (max(every) - min(every))
            total += importance.get(name, 1.0) * share
            value += importance.get(name, 1.0)
        result.append(total / value)
    return result


@pytest.mark.parametrize("importance", [{}, {"size": 2.5, "family": 0.0}])
def test_similarity_is_gowers(importance: dict[str, float]) -> None:
    expected = by_loops(FRAME, TARGET, importance)
    got = gower_similarity(FRAME, TARGET, importance=importance)
    assert got == pytest.approx(expected, rel=1e-12)


def test_a_target_equal_to_a_reference_has_similarity_one_with_it() -> None:
    for k in range(4):
        similarity = gower_similarity(FRAME, FRAME.iloc[k])
        assert similarity[k] == 1.0
        assert max(similarity) == 1.0
        assert min(similarity) >= 0.0


def test_weights_are_powers_of_the_similarity_with_sum_one() -> None:
    similarity = np.array(by_loops(FRAME, TARGET, {}))
    for sharpness in (1.0, 3.0):
        expected = similarity**sharpness / (similarity**sharpness).sum()
        got = weights_from_metadata(FRAME, TARGET, sharpness=sharpness)
        assert got == pytest.approx(expected.tolist(), rel=1e-12)
    assert weights_from_metadata(FRAME, TARGET, sharpness=0.0) == [0.25] * 4


def test_order_of_rows_and_columns_does_not_matter() -> None:
    weights = dict(zip("abcd", weights_from_metadata(FRAME, TARGET), strict=True))
    other = FRAME.iloc[[2, 0, 3, 1]][list(FRAME.columns)[::-1]]
    got = weights_from_metadata(other, pd.Series(TARGET, dtype=object))
    assert got == pytest.approx([weights[k] for k in "cadb"], rel=1e-12)
    asked = weights_from_metadata(FRAME, TARGET, models=["c", "a", "d", "b"])
    assert asked == pytest.approx(got, rel=1e-12)


def test_rows_that_are_not_asked_for_do_not_count() -> None:
    some = weights_from_metadata(FRAME, TARGET, models=["a", "b"])
    assert some == weights_from_metadata(FRAME.loc[["a", "b"]], TARGET)


def test_missing_values_are_an_error_unless_skipped() -> None:
    frame, target = FRAME.copy(), dict(TARGET)
    frame.loc["b", "size"] = np.nan
    frame.loc["c", "family"] = None
    target["chat"] = None
    with pytest.raises(DataError, match="missing values in 'size', 'family', 'chat'"):
        weights_from_metadata(frame, target)
    got = gower_similarity(frame, target, missing="skip")
    for k, columns in (
        ("a", ["size", "layers", "family", "released"]),
        ("b", ["layers", "family", "released"]),
        ("c", ["size", "layers", "released"]),
    ):
        # Ranges are of what is known in each column: 70 billion of b is not.
        row = {name: [*frame[name].dropna(), target[name]] for name in columns}
        shares = []
        for name in columns:
            value = frame.loc[k, name]
            if name == "family":
                shares.append(float(value == target[name]))
                continue
            span = max(row[name]) - min(row[name])
            shares.append(1 - abs(value - target[name]) / span)
        mean = sum(shares) / len(shares)
        assert got["abcd".index(k)] == pytest.approx(mean, rel=1e-12)


def test_a_reference_without_anything_known_is_refused() -> None:
    frame = FRAME[["family", "size"]].copy()
    frame.loc["d", :] = None
    with pytest.raises(DataError, match="no value in common with the target for 'd'"):
        gower_similarity(frame, {"family": "gpt", "size": 1.0}, missing="skip")


def test_what_does_not_match_is_named() -> None:
    with pytest.raises(DataError, match=r"target_row: expected the columns .* got"):
        weights_from_metadata(FRAME, {**TARGET, "sise": 1.0})
    with pytest.raises(DataError, match="importance: no columns of frame: 'sise'"):
        weights_from_metadata(FRAME, TARGET, importance={"sise": 1.0})
    with pytest.raises(DataError, match="importance: expected finite weights >= 0"):
        weights_from_metadata(FRAME, TARGET, importance={"size": -1.0})
    with pytest.raises(DataError, match="models: not in these references: 'e'"):
        weights_from_metadata(FRAME, TARGET, models=["a", "e"])
    with pytest.raises(DataError, match="frame: expected unique ids, repeated: 'a'"):
        weights_from_metadata(FRAME.loc[["a", "a"]], TARGET)
    with pytest.raises(DataError, match="'size': could not convert"):
        weights_from_metadata(FRAME, {**TARGET, "size": "small"})
    with pytest.raises(DataError, match="'size': expected finite values"):
        weights_from_metadata(FRAME, {**TARGET, "size": float("inf")})
    with pytest.raises(DataError, match="sharpness: expected a number >= 0"):
        weights_from_metadata(FRAME, TARGET, sharpness=-1.0)
    with pytest.raises(DataError, match="missing: expected one of"):
        weights_from_metadata(FRAME, TARGET, missing="drop")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="all weights would be 0"):
        weights_from_metadata(FRAME[["family"]], {"family": "mamba"})


def test_a_column_without_any_range_does_not_tell_models_apart() -> None:
    frame = pd.DataFrame({"size": [7.0, 7.0], "family": ["a", "b"]}, index=["x", "y"])
    assert gower_similarity(frame, {"size": 7.0, "family": "b"}) == [0.5, 1.0]
