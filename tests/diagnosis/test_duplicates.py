from __future__ import annotations

import numpy as np
import pytest
from populations import answers

from gp_eval.diagnosis.duplicates import difference_from_chance, duplicate_groups
from gp_eval.diagnosis.table import Table

NAMES = tuple(f"m{k}" for k in range(100))


def groups(scores: np.ndarray, *, keep: set[str] = frozenset()) -> list[list[int]]:
    names = NAMES[: scores.shape[1]]
    return duplicate_groups(Table(scores), names, level=0.01, keep=set(keep))


def fitted(column: np.ndarray, rest: np.ndarray) -> np.ndarray:
    design = np.stack([np.ones(len(rest)), rest], axis=1)
    return design @ np.linalg.lstsq(design, column, rcond=None)[0]


def test_chance_is_two_regressions_on_all_other_models() -> None:
    scores = 5.0 * answers(40, 6, seed=0) - 2.0
    scores[:, 3] = np.random.default_rng(0).uniform(-2.0, 3.0, size=40)
    x = (scores + 2.0) / 5.0
    observed, expected = difference_from_chance(Table(scores))
    for j in range(6):
        for k in range(6):
            if j == k:
                continue
            rest = x[:, [m for m in range(6) if m not in (j, k)]].sum(1)
            f, g = fitted(x[:, j], rest), fitted(x[:, k], rest)
            chance = ((f - g) ** 2 + (x[:, j] - f) ** 2 + (x[:, k] - g) ** 2).sum()
            assert expected[j, k] == pytest.approx(chance, rel=1e-10)
            seen = ((x[:, j] - x[:, k]) ** 2).sum()
            assert observed[j, k] == pytest.approx(seen, rel=1e-10)


def test_independent_models_differ_as_much_as_chance_says() -> None:
    scores = answers(2000, 30, seed=0)
    observed, expected = difference_from_chance(Table(scores))
    ratio = (observed / expected)[np.triu_indices(30, 1)]
    # A straight line for a curve of difficulty leaves a little in common.
    assert 0.9 < np.mean(ratio) < 1.02
    assert ratio.min() > 0.7


def test_equal_columns_are_found_also_beside_gaps() -> None:
    scores = answers(200, 10, seed=0)
    scores[:, 7] = scores[:, 2]
    scores[:50, 7] = np.nan
    assert groups(scores) == [[2, 7]]  # the one with fewer gaps first


def test_almost_equal_columns_are_found_and_similar_ones_are_not() -> None:
    scores = answers(300, 20, seed=1)
    generator = np.random.default_rng(0)
    for other, flips in ((1, 4), (2, 60)):
        places = generator.choice(300, flips, replace=False)
        scores[:, other] = scores[:, 0]
        scores[places, other] = 1.0 - scores[places, other]
    assert groups(scores) == [[0, 1]]


def test_all_of_a_group_are_alike() -> None:
    """A chain of small steps does not make one model of its two ends."""
    scores = answers(400, 20, seed=2)
    for k in range(1, 8):
        scores[:, k] = scores[:, k - 1]
        scores[20 * k : 20 * k + 12, k] = 1.0 - scores[20 * k : 20 * k + 12, k]
    observed, expected = difference_from_chance(Table(scores))
    found = groups(scores)
    assert found
    for group in found:
        for j in group:
            for k in set(group) - {j}:
                assert observed[j, k] <= 0.1 * expected[j, k]
    assert not any({0, 7} <= set(group) for group in found)


def test_a_model_to_keep_comes_first() -> None:
    scores = answers(200, 10, seed=0)
    scores[:, 7] = scores[:, 2]
    assert groups(scores, keep={"m7"}) == [[7, 2]]


def test_near_perfect_models_that_fail_the_same_item_are_no_copies() -> None:
    scores = answers(100, 12, seed=3)
    scores[:, :2] = 1.0
    scores[5, :2] = 0.0
    assert groups(scores) == []


def test_random_answers_with_little_spread_are_no_copies() -> None:
    """As probabilities of models that know nothing: near the same value always."""
    generator = np.random.default_rng(0)
    scores = np.clip(answers(500, 15) * 0.8 + 0.1, 0.0, 1.0)
    scores[:, :2] = 0.2 + 0.05 * generator.random((500, 2))
    assert groups(scores) == []


def test_independent_models_are_no_copies_at_any_size() -> None:
    for seed in range(30):
        for shape in ((20, 3), (100, 10), (300, 30)):
            assert groups(answers(*shape, seed=seed)) == []


def test_two_models_can_be_copies() -> None:
    scores = answers(100, 2, seed=0)
    assert groups(scores) == []
    scores[:, 1] = scores[:, 0]
    assert groups(scores) == [[0, 1]]


def test_two_kinds_of_model_in_many_copies_are_two_models() -> None:
    scores = answers(100, 1, seed=0)
    both = np.hstack([np.repeat(scores, 4, 1), np.repeat(1.0 - scores, 3, 1)])
    assert groups(both) == [[0, 1, 2, 3], [4, 5, 6]]
    assert groups(np.repeat(scores, 5, 1)) == [[0, 1, 2, 3, 4]]
