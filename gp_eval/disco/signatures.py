"""Signatures: the responses of a model to the chosen items, as one vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from gp_eval.disco.probabilities import normalise_
from gp_eval.errors import DataError, MissingDependencyError

__all__ = [
    "Principal",
    "Reducer",
    "Umap",
    "probability_signatures",
    "score_signatures",
]


def probability_signatures(probabilities: Tensor) -> Tensor:
    """Class probabilities of the chosen items side by side, ``K x kC``.

    Args:
        probabilities: ``K x k x C`` of the ``k`` chosen items. Padding may stay: it is
            the same for all models and has no part in what follows.

    Raises:
        DataError: For values that are no probabilities.
    """
    values = normalise_(probabilities.to(torch.float64, copy=True))
    return values.reshape(values.shape[0], -1)


def score_signatures(scores: Tensor) -> Tensor:
    """Scores of the chosen items as signatures, ``K x k``, from ``k x K``."""
    return scores.double().T.contiguous()


class Reducer(Protocol):
    """From signatures ``T x D`` to features ``T x F``, as fitted on the references."""

    def __call__(self, signatures: Tensor) -> Tensor:
        """Features of signatures."""

    def arrays(self) -> dict[str, np.ndarray]:
        """What rebuilds it."""


@dataclass(frozen=True)
class Principal:
    """Centred signatures, projected on principal components unless there are none.

    Attributes:
        mean: Mean signature of the references, shape ``D``.
        components: Orthonormal rows, ``F x D``; ``None`` keeps all ``D`` features.
        with_residual: Whether the distance from the components' span is one more
            feature.
    """

    mean: Tensor
    components: Tensor | None
    with_residual: bool = False

    @classmethod
    def whole(cls, signatures: Tensor) -> Self:
        """All components and the distance from their span: nothing is lost.

        The references lie in the span. A later model does not, and its inner products
        with the references, with itself and so its distances from them are those of
        whole signatures: what a kernel sees is the same, in ``K`` features.
        """
        everything = cls.fit(signatures, min(signatures.shape))
        return cls(everything.mean, everything.components, with_residual=True)

    @classmethod
    def fit(cls, signatures: Tensor, n_components: int | None) -> Self:
        """The leading components, as many as the data allow.

        ``K`` centred signatures span at most ``K - 1`` dimensions, and fewer where
        models are equal; more components than that would be rounding. The published
        code stops with an error instead.

        Args:
            signatures: Those of the references, ``K x D``.
            n_components: At most so many; ``None`` for no projection.

        Raises:
            ValueError: For fewer than 1 component.
            DataError: If all signatures are equal.
        """
        mean = signatures.mean(0)
        # Padding does not vary: no part of the result, but most of the cost.
        varying = signatures.amax(0) > signatures.amin(0)
        if not bool(varying.any()):
            raise DataError(
                "signatures: all references respond alike to the chosen items: there "
                "is nothing to learn from"
            )
        if n_components is None:
            return cls(mean, None)
        if n_components < 1:
            raise ValueError(f"pca: expected at least 1, got {n_components}")
        from sklearn.decomposition import PCA

        kept = signatures[:, varying]
        most = min(n_components, kept.shape[0] - 1, kept.shape[1])
        pca = PCA(most, svd_solver="full").fit(kept.numpy())
        spread = pca.singular_values_
        rank = int((spread > spread[0] * max(kept.shape) * np.finfo(float).eps).sum())
        components = torch.zeros(rank, signatures.shape[1], dtype=torch.float64)
        components[:, varying] = torch.from_numpy(pca.components_[:rank])
        return cls(mean, components)

    def __call__(self, signatures: Tensor) -> Tensor:
        """Features ``T x F`` of signatures ``T x D``."""
        centred = signatures - self.mean
        if self.components is None:
            return centred
        features = centred @ self.components.T
        if not self.with_residual:
            return features
        residual = (centred - features @ self.components).norm(dim=-1, keepdim=True)
        return torch.cat([features, residual], -1)

    def arrays(self) -> dict[str, np.ndarray]:
        """Mean and components."""
        arrays = {
            "mean": self.mean.numpy(),
            "with_residual": np.array(self.with_residual),
        }
        if self.components is not None:
            arrays["components"] = self.components.numpy()
        return arrays

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray]) -> Self:
        """The inverse of :meth:`arrays`."""
        rows = arrays.get("components")
        return cls(
            torch.from_numpy(arrays["mean"]),
            None if rows is None else torch.from_numpy(rows),
            bool(arrays["with_residual"]),
        )


class Umap:
    """UMAP of signatures, for comparison: needs ``pip install 'gp-eval[umap]'``.

    The map is rebuilt from the references' signatures and the seed, also on loading.

    Args:
        signatures: Those of the references, ``K x D``.
        n_components: Number of features.
        seed: Fixes the map.

    Raises:
        MissingDependencyError: Without umap-learn.
    """

    def __init__(self, signatures: Tensor, n_components: int, *, seed: int) -> None:
        try:
            from umap import UMAP
        except ImportError as error:
            raise MissingDependencyError(
                "umap: needs umap-learn: pip install 'gp-eval[umap]', or use pca="
            ) from error
        self.signatures = signatures
        # One thread is what makes it reproducible; umap-learn warns if not told.
        self._map = UMAP(n_components=n_components, random_state=seed, n_jobs=1)
        self._features = self._map.fit_transform(signatures.numpy())

    def __call__(self, signatures: Tensor) -> Tensor:
        """Features ``T x F`` of signatures ``T x D``."""
        if torch.equal(signatures, self.signatures):
            features = self._features
        else:
            features = self._map.transform(signatures.numpy())
        return torch.as_tensor(features, dtype=torch.float64)

    def arrays(self) -> dict[str, np.ndarray]:
        """The signatures that the map was made from."""
        return {"signatures": self.signatures.numpy()}
