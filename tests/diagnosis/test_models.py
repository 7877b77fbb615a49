from __future__ import annotations

import numpy as np
import pytest
from populations import answers
from scipy import stats

from gp_eval.diagnosis.items import discrimination, unanimous
from gp_eval.diagnosis.models import agreement, weak
from gp_eval.diagnosis.table import Table


def test_what_is_typical_is_the_median_share_of_what_is_attainable() -> None:
    scores = answers(200, 9, seed=0)
    found = agreement(Table(scores), level=0.01)
    rest = (scores.sum(1, keepdims=True) - scores) / 8
    r = [np.corrcoef(scores[:, k], rest[:, k])[0, 1] for k in range(9)]
    most = [
        np.corrcoef(np.sort(scores[:, k]), np.sort(rest[:, k]))[0, 1] for k in range(9)
    ]
    expected = np.median(np.array(r) / most) * np.array(most)
    assert found.members.all()
    np.testing.assert_allclose(found.correlations.r, r, rtol=1e-10)
    np.testing.assert_allclose(found.expected, expected, rtol=1e-10)


def test_the_verdict_is_that_of_the_mean_without_those_that_fail() -> None:
    scores = answers(300, 12, seed=1)
    clean = agreement(Table(scores[:, 4:]), level=0.01)
    scores[:, :2] = 1.0 - scores[:, :2]
    scores[:, 2] = np.random.default_rng(0).permutation(scores[:, 2])
    scores[:, 3] = np.random.default_rng(1).permutation(scores[:, 3])
    found = agreement(Table(scores), level=0.01)
    assert np.flatnonzero(found.anticorrelated).tolist() == [0, 1]
    assert np.flatnonzero(found.unrelated).tolist() == [2, 3]
    np.testing.assert_allclose(
        found.correlations.r[4:], clean.correlations.r, rtol=1e-10
    )


def test_two_models_that_contradict_each_other_are_both_named() -> None:
    scores = answers(100, 1, seed=0)
    found = agreement(Table(np.hstack([scores, 1.0 - scores])), level=0.01)
    assert found.anticorrelated.tolist() == [True, True]


def test_too_few_items_to_show_an_order_are_no_fault() -> None:
    alarms = 0
    for seed in range(100):
        found = agreement(Table(answers(8, 6, seed=seed)), level=0.01)
        alarms += bool(found.unrelated.any())
    assert alarms <= 4  # 1 is expected at the level


def test_a_model_with_few_right_answers_need_not_show_an_order() -> None:
    scores = answers(300, 30, seed=0)
    scores[:, 0] = 0.0
    scores[[5, 200], 0] = 1.0
    assert not agreement(Table(scores), level=0.01).unrelated[0]


def test_weak_is_not_significantly_above_any_model_that_agrees() -> None:
    generator = np.random.default_rng(0)
    scores = (generator.random((60, 9)) < np.linspace(0.1, 0.9, 9)).astype(float)
    scores[generator.random(scores.shape) < 0.2] = np.nan
    agreeing = np.arange(9) >= 2
    expected = []
    for k in range(9):
        above = []
        for w in np.flatnonzero(agreeing):
            both = ~np.isnan(scores[:, k]) & ~np.isnan(scores[:, w])
            if both.sum() < 0.5 * (~np.isnan(scores[:, k])).sum():
                continue
            a, b = scores[both, k], scores[both, w]
            error = np.sqrt((a.var() + b.var()) / both.sum())
            above.append(a.mean() - b.mean() > stats.norm.isf(0.01 / 7) * error)
        expected.append(not any(above))
    assert weak(Table(scores), agreeing, level=0.01).tolist() == expected
    assert expected[0]
    assert not expected[8]


def test_item_discrimination_is_the_correlation_with_the_mean_of_other_items() -> None:
    scores = answers(12, 40, seed=0)
    found = discrimination(Table(scores), level=0.01).correlations
    for i in range(12):
        rest = np.delete(scores, i, 0).mean(0)
        expected = stats.pearsonr(scores[i], rest).statistic
        assert found.r[i] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n_models", [100, 400])
def test_a_mis_keyed_item_is_found(n_models: int) -> None:
    found = 0
    for seed in range(10):
        scores = answers(200, n_models, seed=seed, discrimination=2.0)
        item = int(np.argmin(np.abs(scores.mean(1) - 0.6)))
        scores[item] = 1.0 - scores[item]
        flags = discrimination(Table(scores), level=0.01).miskeyed
        found += bool(flags[item])
        assert flags.sum() <= 1
    assert found >= 9


def test_correct_keys_give_alarms_at_the_level() -> None:
    alarms = sum(
        bool(discrimination(Table(answers(100, 30, seed=s)), level=0.01).miskeyed.any())
        for s in range(300)
    )
    assert alarms <= 9  # 3 expected at the level; more than 9 has probability 0.001


def test_where_half_of_the_items_are_reversed_none_is_mis_keyed() -> None:
    scores = answers(200, 200, seed=0, discrimination=2.0)
    scores[::2] = 1.0 - scores[::2]
    scores[:, :] = scores[:, np.argsort(scores.sum(0))]
    found = discrimination(Table(scores), level=0.01)
    assert not found.miskeyed.any()


def test_unanimous_items_are_those_of_one_score() -> None:
    nan = np.nan
    scores = np.array([[1, 1, 1], [0, 1, 1], [0, nan, 0], [nan, 1, nan], [0.5] * 3])
    flags, value = unanimous(Table(scores))
    assert flags.tolist() == [True, False, True, False, True]
    assert value[[0, 2, 4]].tolist() == [1.0, 0.0, 0.5]
