from __future__ import annotations

import math

import torch

from gp_eval.linalg import Observations


def data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    bucket = torch.tensor([2, 0, 2, 2, 4])
    score = torch.tensor([0.1, 0.9, 0.4, 0.7, 0.2], dtype=torch.float64)
    noise = torch.tensor([0.2, 0.1, 0.4, 0.1, 0.3], dtype=torch.float64)
    return bucket, score, noise


def test_by_item_keeps_every_score() -> None:
    bucket, score, noise = data()
    made = Observations.by_item(bucket, score, noise)
    assert made.noise.tolist() == [0.4, 0.2, 0.4, 0.4, 0.3]
    assert made.constant.item() == 0.0


def test_by_bucket_has_means_and_their_noise() -> None:
    made = Observations.by_bucket(*data())
    assert made.bucket.tolist() == [0, 2, 4]
    torch.testing.assert_close(made.value, torch.tensor([0.9, 0.4, 0.2]).double())
    torch.testing.assert_close(made.noise, torch.tensor([0.2, 0.4 / 3, 0.3]).double())


def test_constant_makes_up_for_the_spread_within_buckets() -> None:
    bucket, score, noise = data()
    scores = [0.1, 0.4, 0.7]
    spread = sum((s - 0.4) ** 2 for s in scores)
    expected = math.log(0.4) + 0.5 * math.log(3) + spread / (2 * 0.4)
    made = Observations.by_bucket(bucket, score, noise)
    torch.testing.assert_close(made.constant, torch.tensor(expected).double())


def test_shortest_switches_at_n_equal_b() -> None:
    bucket, score, noise = data()
    assert Observations.shortest(bucket[:4], score[:4], noise).bucket.shape == (4,)
    assert Observations.shortest(bucket, score, noise).bucket.tolist() == [0, 2, 4]
