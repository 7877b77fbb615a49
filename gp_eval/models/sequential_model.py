"""Conditioning of abilities one score at a time, for one target or for several."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, KeysView
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor

from gp_eval.linalg import (
    KernelTable,
    Observations,
    RowAppendPosterior,
    leave_one_out_scores,
)
from gp_eval.models.item_model import ItemModel

__all__ = ["SequentialModel"]


class SequentialModel(ItemModel):
    r"""A posterior of abilities, kept by row appends, over *points*.

    A point is what has one score: an item, or a pair of item and target. Its score is
    its ability plus noise of variance :math:`\sigma^2 N_b`. Subclasses set up prior and
    engine with :meth:`_begin` and add the belief about benchmark scores.

    Attributes:
        point_ability (Tensor): Ability behind each point, integers of shape ``P``.
        point_weights (Tensor): Weight of each point, shape ``P``.
        ability_counts (Tensor): ``N_b`` of each ability, shape ``A``.
        noise_variance (Tensor): :math:`\sigma^2 N_b` of each ability, shape ``A``.
        totals (Tensor): Summed weight of all points by ability, shape ``A``.
        prior_mean (Tensor): Shape ``A``.
    """

    table: KernelTable
    engine: RowAppendPosterior
    prior_mean: Tensor

    @abstractmethod
    def refresh(self) -> None:
        """Take over new hyperparameters: condition again, by Eq. (7) or Eq. (8)."""

    def _begin(
        self,
        *,
        point_ability: Tensor,
        point_weights: Tensor,
        ability_counts: Tensor,
        noise: Tensor | float,
    ) -> None:
        """Set up what does not depend on table and engine."""
        self.point_ability, self.point_weights = point_ability, point_weights
        self.ability_counts = ability_counts
        self.totals = self._by_ability(point_weights)
        self._seen: dict[int, None] = {}
        self._scores = torch.zeros_like(point_weights)
        self._unseen = torch.ones_like(point_weights)
        self._ability_of: list[int] = point_ability.tolist()
        self._weight_of: list[float] = point_weights.tolist()
        self._uniform = bool((point_weights == 1).all())
        # Not an attribute of its own: torch checks every assignment to a module.
        self._memo: dict[str, Tensor] = {}
        self._set_noise(noise)

    def _set_noise(self, noise: Tensor | float) -> None:
        weights = self.point_weights
        self.noise_variance = noise * self.ability_counts
        self._noise = self.noise_variance[self.point_ability]
        self._weighted_noise = weights * self._noise
        self._squared_noise = weights * self._weighted_noise
        self._noise_of: list[float] = self._noise.tolist()

    def _by_ability(self, point_values: Tensor) -> Tensor:
        """Sums over the points of each ability, exact zeros where all terms are 0."""
        zeros = torch.zeros_like(self.ability_counts)
        return zeros.index_add_(0, self.point_ability, point_values)

    @property
    def n(self) -> int:
        """Number of evaluated points."""
        return len(self._seen)

    @property
    def seen(self) -> KeysView[int]:
        """The evaluated points, for membership tests."""
        return self._seen.keys()

    def point_name(self, point: int) -> str:
        """How error messages call a point."""
        return str(point)

    @property
    def evaluated(self) -> list[int]:
        """Evaluated points in the order in which they came."""
        return list(self._seen)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Refuse to move: tables and posterior would stay behind."""
        raise RuntimeError(
            f"{type(self).__name__} cannot be moved or cast; build it from "
            "buckets.to(device). It computes in float64"
        )

    # Conditioning

    def append(self, item: int, score: float) -> None:
        """Condition on the score of one more point, in place.

        Raises:
            ValueError: If the point was evaluated before.
        """
        if item in self._seen:
            raise ValueError(f"item: {self.point_name(item)} is evaluated already")
        self._append(item, float(score))
        self._seen[item] = None
        self._scores[item] = score

    def _append(self, item: int, score: float) -> None:
        self.engine.append(
            self._ability_of[item], score, self._noise_of[item], self._weight_of[item]
        )
        self._unseen[item] = 0.0
        self._memo.clear()
        if not self._uniform:
            # Differences of weights would leave rounding where 0 is meant.
            self.engine.remaining = self._by_ability(self.point_weights * self._unseen)

    def take_in(self, points: list[int], scores: list[float]) -> None:
        """Register points without conditioning; ``refresh`` then does it at once."""
        for point, score in zip(points, scores, strict=True):
            self._seen[point] = None
            self._scores[point] = score
            self._unseen[point] = 0.0
        self.engine.remaining = self._by_ability(self.point_weights * self._unseen)

    def _condition_again(self, prior_mean: Tensor) -> None:
        """Take over a changed prior, by Eq. (7) or Eq. (8)."""
        self.table.refresh()
        self.prior_mean = self.engine.prior_mean = prior_mean
        self.engine.condition(self.observations(shortest=True))
        self._memo.clear()

    def observations(self, *, shortest: bool = False) -> Observations:
        """The evaluated points, one value each or in the shorter of both forms."""
        points = torch.tensor(self.evaluated, dtype=torch.long).to(self._scores.device)
        form = Observations.shortest if shortest else Observations.by_item
        abilities = self.point_ability[points]
        return form(abilities, self._scores[points], self.noise_variance)

    # What reports read

    def weighted_sums(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""Posterior of weighted sums of the scores of all points.

        :math:`\sum_{i \in C} v_i s_i + \sum_{i \notin C} v_i \mu_{b(i)|C}` with
        covariance :math:`u^\top \Sigma_{|C} u' + \sum_{i \notin C} v_i v'_i \sigma^2
        N_{b(i)}`, ``u`` the summed weights of what is left by ability: Eqs. (2), (3)
        for any weights.

        Args:
            weights: ``v``, ``m x P``.

        Returns:
            Means and variances, both of shape ``m``, and the covariance ``m x m``;
            a variance is exactly 0 where all points of weight are evaluated.
        """
        weights = weights.to(self._unseen)
        left = weights * self._unseen
        zeros = left.new_zeros(left.shape[0], self.totals.shape[0])
        sums = zeros.index_add_(1, self.point_ability, left)
        mean = weights @ self._scores + sums @ self.engine.mean
        own = (left * self._noise) @ left.T
        covariance = self.engine.covariance_of_sums(sums.T) + own
        covariance = 0.5 * (covariance + covariance.T)
        return mean, covariance.diagonal(), covariance

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Predictive mean and variance of each evaluated score from all the others.

        In the order of :attr:`evaluated`, with the present hyperparameters.
        """
        points = torch.tensor(self.evaluated, dtype=torch.long).to(self._scores.device)
        return leave_one_out_scores(
            self.table,
            self.prior_mean,
            self.point_ability[points],
            self._scores[points],
            self.noise_variance,
        )

    @contextmanager
    def lookahead(self) -> Iterator[Callable[[int], None]]:
        """Condition the *variances* on points before their scores are known.

        Yields a function that adds one point, as if its score were the posterior mean;
        on exit the model is as before. Since no variance depends on scores, what is
        selected inside equals what one-by-one evaluation would have selected.
        """
        state, unseen = self.engine.snapshot(), self._unseen.clone()

        def add(item: int) -> None:
            self._append(item, float(self.engine.mean[self._ability_of[item]]))

        try:
            yield add
        finally:
            self.engine.restore(state)
            self._unseen = unseen
            self._memo.clear()

    # What BoTorch's interface is made of

    def score_covariance(self, items: Tensor) -> Tensor:
        """Predictive covariance ``... x q x q`` of points ``... x q``, with noise."""
        ability = self.point_ability[items]
        noise = torch.diag_embed(self.noise_variance[ability])
        return self.engine.covariance(ability, ability) + noise

    def score_variance(self, items: Tensor) -> Tensor:
        """Predictive variances of the scores of points, any shape, with noise."""
        ability = self.point_ability[items]
        return self.engine.variance[ability] + self.noise_variance[ability]

    def score_cross_covariance(self, left: Tensor, right: Tensor) -> Tensor:
        """Predictive covariance ``p x q`` of points ``p`` with points ``q``.

        A score has its noise in common with itself only.
        """
        abilities = self.point_ability[left], self.point_ability[right]
        same = left.unsqueeze(-1) == right
        noise = self._noise[left].unsqueeze(-1)
        return self.engine.covariance(*abilities).addcmul_(same.to(noise), noise)

    def latent(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and covariance of the abilities behind points ``... x q``."""
        ability = self.point_ability[items]
        return self.engine.mean[ability], self.engine.covariance(ability, ability)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> Self:
        """A new model with these inputs (``n x d``) and scores (``n x 1``) as well."""
        if X.ndim != 2 or Y.shape != (X.shape[0], 1):
            raise ValueError(
                f"X, Y: expected shapes n x {self.n_inputs} and n x 1, got "
                f"{tuple(X.shape)} and {tuple(Y.shape)}"
            )
        copy = self.clone()
        for item, score in zip(self.points(X).tolist(), Y.reshape(-1), strict=True):
            copy.append(item, score)
        return copy

    def clone(self) -> Self:
        """An independent copy that shares prior and hyperparameters."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.engine = self.engine.clone()
        copy.table = copy.engine.table
        copy._seen, copy._memo = dict(self._seen), {}
        copy._scores, copy._unseen = self._scores.clone(), self._unseen.clone()
        return copy
