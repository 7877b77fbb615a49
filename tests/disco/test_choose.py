from __future__ import annotations

from collections import Counter

import pytest
import torch

from gp_eval.disco import disagreement_order, guiding_models


def test_highest_scores_come_first_and_the_lower_index_wins_a_tie() -> None:
    scores = torch.tensor([1.0, 3.0, 2.0, 3.0, 1.0], dtype=torch.float64)
    expected = sorted(range(5), key=lambda i: -float(scores[i]))  # stable, as theirs
    assert disagreement_order(scores).tolist() == expected == [1, 3, 2, 0, 4]


def test_rounding_of_sums_does_not_break_a_tie() -> None:
    scores = torch.tensor([0.6, 0.1 + 0.2 + 0.3, 0.7], dtype=torch.float64)
    assert float(scores[1]) > float(scores[0])
    assert disagreement_order(scores).tolist() == [2, 0, 1]


def stratified_by_loops(scores: list[float], groups: list[str]) -> list[int]:
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    chosen: list[int] = []
    while len(chosen) < len(scores):
        round_ = []
        for group in set(groups):
            left = [i for i in order if groups[i] == group and i not in chosen]
            round_ += left[:1]
        chosen += sorted(round_, key=order.index)
    return chosen


@pytest.mark.parametrize("seed", range(3))
def test_groups_take_turns_in_the_order_of_scores(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(6, (40,), generator=generator).double()
    groups = [f"g{int(i)}" for i in torch.randint(5, (40,), generator=generator)]
    order = disagreement_order(scores, groups=groups).tolist()
    assert order == stratified_by_loops(scores.tolist(), groups)
    smallest = min(Counter(groups).values())
    for k in range(1, 5 * smallest + 1):
        shares = Counter(groups[i] for i in order[:k])
        assert {shares[group] - k // 5 for group in set(groups)} <= {0, 1}


def test_groups_must_be_as_many_as_items() -> None:
    with pytest.raises(ValueError, match="groups: expected 3, got 2"):
        disagreement_order(torch.ones(3), groups=["a", "b"])


def test_guiding_models_are_drawn_by_the_seed_alone() -> None:
    state = torch.get_rng_state()
    first = guiding_models(50, 10, seed=3)
    assert first is not None
    assert torch.equal(torch.get_rng_state(), state)
    assert first.tolist() == guiding_models(50, 10, seed=3).tolist()
    assert first.tolist() != guiding_models(50, 10, seed=4).tolist()
    assert first.tolist() == sorted(set(first.tolist()))
    assert set(first.tolist()) <= set(range(50))
    assert guiding_models(50, None) is None
    counts = Counter(int(m) for s in range(300) for m in guiding_models(6, 3, seed=s))
    assert min(counts.values()) > 110  # expected 150, standard deviation 9


@pytest.mark.parametrize("size", [1, 51])
def test_too_few_or_many_guiding_models_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=rf"expected 2..50 models, got {size}"):
        guiding_models(50, size)
