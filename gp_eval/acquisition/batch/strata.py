"""First batches of one random item from each of ``q`` clusters."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

__all__ = ["stratified_batches"]

_ITERATIONS = 20


def stratified_batches(
    features: Tensor, q: int, *, size: int, rng: np.random.Generator
) -> Tensor:
    """Batches with one candidate of each K-means cluster (Appendix B.1, "Clust").

    Args:
        features: What candidates are clustered by, ``M x d``: their reference scores.
        q: Number of clusters and size of a batch, at most ``M``.
        size: Number of batches.
        rng: Where the randomness comes from.

    Returns:
        Candidates ``size x q``. With fewer than ``q`` different rows there are fewer
        clusters, and any other candidates take the places left.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    means = KMeans(
        q, n_init=1, max_iter=_ITERATIONS, random_state=int(rng.integers(2**31))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = means.fit_predict(features.numpy())
    members = [np.flatnonzero(labels == label) for label in range(q)]
    batches = []
    for _ in range(size):
        batch = [int(rng.choice(part)) for part in members if part.shape[0]]
        if len(batch) < q:
            others = np.setdiff1d(np.arange(labels.shape[0]), batch)
            batch += rng.choice(others, q - len(batch), replace=False).tolist()
        batches.append(batch)
    return torch.tensor(batches, dtype=torch.long).reshape(size, q)
