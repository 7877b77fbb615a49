from __future__ import annotations

import numpy as np
import torch

from gp_eval.acquisition.batch import stratified_batches


def test_every_batch_has_one_item_of_each_cluster() -> None:
    centre = torch.tensor([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]]).double()
    cluster = torch.arange(30) % 3
    noise = torch.rand(30, 2, generator=torch.Generator().manual_seed(0)).double()
    features = centre[cluster] + noise
    batches = stratified_batches(features, 3, size=200, rng=np.random.default_rng(0))
    assert batches.shape == (200, 3)
    assert bool((cluster[batches].sort(1).values == torch.arange(3)).all())
    assert len(set(batches.reshape(-1).tolist())) == 30  # uniform within clusters


def test_fewer_different_rows_than_clusters_still_give_whole_batches() -> None:
    features = torch.arange(8).remainder(2).double().unsqueeze(-1)
    batches = stratified_batches(features, 5, size=20, rng=np.random.default_rng(0))
    assert all(len(set(batch)) == 5 for batch in batches.tolist())
    assert bool((features[batches].squeeze(-1).sum(1) > 0).all())
    assert bool((features[batches].squeeze(-1).sum(1) < 5).all())
