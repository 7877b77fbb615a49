from __future__ import annotations

import numpy as np
import pytest
from populations import answers
from scipy import stats

from gp_eval.diagnosis.blocks import find_blocks, relation
from gp_eval.diagnosis.table import Table


def reordered(scores: np.ndarray, models: list[int], seed: int = 0) -> np.ndarray:
    """The items of some models in another order, the same for all of them."""
    order = np.random.default_rng(seed).permutation(len(scores))
    changed = scores.copy()
    changed[:, models] = scores[np.ix_(order, models)]
    return changed


def test_the_relation_is_spearmans_correction_of_the_correlation_of_means() -> None:
    scores = answers(300, 20, seed=0)
    one, other = list(range(8)), list(range(8, 20))
    a, b = scores[:, one].mean(1), scores[:, other].mean(1)

    def alpha(x: np.ndarray) -> float:
        k = x.shape[1]
        share = x.var(0, ddof=1).sum() / x.sum(1).var(ddof=1)
        return float(k / (k - 1) * (1 - share))

    most = np.corrcoef(np.sort(a), np.sort(b))[0, 1]
    found = relation(Table(scores), one, other, level=0.01, tests=20)
    assert found.correlation == pytest.approx(stats.pearsonr(a, b)[0], rel=1e-10)
    expected = np.sqrt(alpha(scores[:, one]) * alpha(scores[:, other])) * most
    assert found.expected == pytest.approx(expected, rel=1e-10)
    assert (found.related, found.opposed, found.apart) == (True, False, False)


@pytest.mark.parametrize("size", [8, 15, 20])
def test_two_orders_are_two_blocks(size: int) -> None:
    scores = answers(400, 40, seed=size, discrimination=1.5)
    changed = reordered(scores, list(range(size)))
    found = find_blocks(Table(changed), level=0.01)
    sets = sorted((set(block) for block in found.blocks), key=min)
    assert len(sets) == 2
    # Weak models may be left aside; none may be in the wrong block.
    assert sets[0] <= set(range(size))
    assert sets[1] <= set(range(size, 40))
    assert len(found.loose) <= 6


def test_three_orders_are_three_blocks() -> None:
    scores = answers(500, 45, seed=0, discrimination=1.5)
    changed = reordered(reordered(scores, list(range(10)), 1), list(range(10, 22)), 2)
    found = find_blocks(Table(changed), level=0.01)
    ranges = [set(range(10)), set(range(10, 22)), set(range(22, 45))]
    for block, whole in zip(sorted(found.blocks, key=min), ranges, strict=True):
        assert set(block) <= whole


def test_flipped_models_are_a_block_that_is_opposed() -> None:
    scores = answers(400, 40, seed=0, discrimination=1.5)
    scores[:, :12] = 1.0 - scores[:, :12]
    found = find_blocks(Table(scores), level=0.01)
    small, large = sorted(found.blocks, key=len)
    assert set(small) <= set(range(12))
    outcome = relation(Table(scores), small, large, level=0.01, tests=40)
    assert outcome.opposed
    assert outcome.apart


@pytest.mark.parametrize("shape", [(30, 4), (100, 10), (200, 40), (60, 100)])
def test_one_order_is_never_two_blocks(shape: tuple[int, int]) -> None:
    for seed in range(25):
        assert (
            len(find_blocks(Table(answers(*shape, seed=seed)), level=0.01).blocks) < 2
        )


@pytest.mark.parametrize("shape", [(50, 20), (200, 60)])
def test_no_order_is_no_block(shape: tuple[int, int]) -> None:
    alarms = 0
    for seed in range(25):
        noise = np.random.default_rng(seed).random(shape) < 0.5
        alarms += bool(find_blocks(Table(noise.astype(float)), level=0.01).blocks)
    assert alarms <= 1


def test_every_model_is_in_one_place() -> None:
    changed = reordered(answers(200, 30, seed=1), list(range(11)))
    found = find_blocks(Table(changed), level=0.01)
    everyone = sorted(found.loose + [k for block in found.blocks for k in block])
    assert everyone == list(range(30))


@pytest.mark.parametrize("n_models", [0, 1])
def test_fewer_than_two_models_are_no_block(n_models: int) -> None:
    found = find_blocks(Table(np.zeros((9, n_models))), level=0.01)
    assert (found.blocks, found.loose) == ([], list(range(n_models)))
