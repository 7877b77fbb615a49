"""A better prior than the published one, as a model of the harness."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval.acquisition import qPerformanceInformationGain
from gp_eval.data import Buckets, References
from gp_eval.models.population.model import SequentialPopulationModel
from gp_eval.models.population.prior import PopulationPrior, fit_population_prior
from gp_eval.models.protocol import (
    Hyperparameters,
    LeaveOneOut,
    Performance,
    check_batch,
)
from gp_eval.optim.lbfgsb import Fit

__all__ = ["Population", "is_update"]

_FIRST = (3, 6, 10, 15, 20, 30, 40)
_EVERY = 50

_EARLY = 10.0
"""Scores at which the variance of the score is inflated twice as much as in the end."""

_FEW = 4.0
"""References at which it is inflated twice as much as with many."""


def is_update(n: int) -> tuple[bool, bool]:
    """Whether effects, and whether variances, are fitted after ``n`` items.

    Effects often at first, when they move most, then at every factor of the square
    root of 2; variances at 50, 100, 200, 400 ...
    """
    if n in _FIRST:
        return True, False
    if n < _EVERY:
        return False, False
    step = 0
    while round(_EVERY * 2 ** (step / 2)) < n:
        step += 1
    due = round(_EVERY * 2 ** (step / 2)) == n
    return due, due and step % 2 == 0


class Population:
    r"""Estimates with a prior learned from how the references vary item by item.

    The references say how easy an item is, how much ability counts on it, how much its
    score varies, and which items go together
    (:class:`~gp_eval.kernels.PopulationKernel`). A target has an ability, a slope and
    an offset of its own on the logit scale, fitted to its scores as they come, so that
    it may be far above all references; a Gaussian process is linearised around that.
    Hyperparameters are the most probable ones under a prior that references playing the
    target suggest (:func:`~gp_eval.models.population.prior.fit_population_prior`).

    The first ``initial`` items are chosen at random, which guards against what the
    prior does not know, all others by information gain. Between updates
    (:func:`is_update`) no choice depends on scores. The estimate is the posterior mean,
    and at ``n = N`` the mean with variance 0.

    The standard deviation of the score is inflated by ``inflation`` times
    :math:`\sqrt{(1 + 10 / n)(1 + 4 / K)}`: a linearised model with fitted
    hyperparameters leaves something out, the more so the fewer scores and references it
    was fitted to. The numbers were chosen by coverage over all sets of
    ``benchmarks/calibration.py``, not by set.

    Args:
        references: Complete reference scores, at least two references.
        initial: Items chosen at random before any other.
        explore: If given, one of so many items is chosen at random later on as well;
            over the sets of the benchmark that cost more than it gave.
        inflation: Factor of the standard deviation of the score, at least 1.
        tolerance: For the buckets of continuous scores, see
            :meth:`~gp_eval.data.Buckets.from_references`.
        device: Where to compute; default the CPU.

    Attributes:
        updates: Hyperparameters by the ``n`` from which on they are used.
        fits: How each fit of the variances ended.
    """

    adapts_off_range = True
    """A target above all references is no emergency."""

    def __init__(
        self,
        references: References,
        *,
        initial: int = 10,
        explore: int | None = None,
        inflation: float = 1.25,
        tolerance: float = 0.0,
        device: torch.device | str = "cpu",
    ) -> None:
        if initial < 0:
            raise ValueError(f"initial: expected at least 0, got {initial}")
        if explore is not None and explore < 2:
            raise ValueError(f"explore: expected at least 2 or None, got {explore}")
        if not inflation >= 1.0:
            raise ValueError(f"inflation: expected at least 1, got {inflation}")
        self.initial, self.explore, self.inflation = initial, explore, inflation
        buckets = Buckets.from_references(references, tolerance=tolerance).to(device)
        prior = _prior_of(references.fingerprint, tolerance, buckets)
        self.model = SequentialPopulationModel(buckets, prior)
        self._gain = qPerformanceInformationGain(self.model)
        self.fits: dict[int, Fit] = {}
        self.updates: dict[int, Hyperparameters] = {0: self._hyperparameters()}
        self._replayed: dict[int, Hyperparameters] = {}

    # The protocol of the harness

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items and their scores, one after the other.

        Raises:
            ValueError: For an item out of range or evaluated before, or a score that is
                not finite; nothing is changed then.
        """
        model = self.model
        n_items, seen = model.buckets.n_items, model.seen
        for item, score in check_batch(
            items, scores, n_items=n_items, seen=seen
        ).items():
            self._update_if_due()
            model.append(item, score)

    def performance(self) -> Performance:
        """Posterior mean and variance of the score after the last item.

        An update that is due by then acts once the next item is selected or taken in.
        """
        variance = self.model.performance_variance() * self._variance_factor()
        return Performance(self.model.performance_mean(), variance)

    def _variance_factor(self) -> float:
        n, n_references = max(self.model.n, 1), self.model.buckets.phi.shape[1]
        return self.inflation**2 * (1.0 + _EARLY / n) * (1.0 + _FEW / n_references)

    def acquisition(self) -> AcquisitionFunction:
        """Information gain about the score."""
        self._update_if_due()
        return self._gain

    def explores(self, position: int) -> bool:
        """Whether the item after ``position`` others is chosen at random."""
        if position < self.initial:
            return True
        return self.explore is not None and position % self.explore == 0

    @property
    def item_groups(self) -> Tensor:
        """Bucket of each item, shape ``N``: what the model cannot tell apart."""
        return self.model.buckets.item_bucket.cpu()

    def weighted_sums(self, weights: Tensor) -> Performance:
        """Posterior of sums of scores with weights ``m x N``, shape ``m``."""
        mean, variance, covariance = self.model.weighted_sums(weights)
        factor = self._variance_factor()
        return Performance(mean, variance * factor, covariance * factor)

    def leave_one_out(self) -> LeaveOneOut:
        """Each evaluated score as the others predict it."""
        items = torch.tensor(self.model.evaluated, dtype=torch.long)
        return LeaveOneOut(items, *self.model.leave_one_out())

    # Hyperparameters

    def replay_updates(self, updates: Mapping[int, Hyperparameters]) -> None:
        """Use these hyperparameters at the given ``n`` instead of optimising."""
        self._replayed.update(updates)
        if 0 in updates and not self.model.n:
            known = updates[0]
            prior = PopulationPrior(
                log_variances=self._tensor(known["log_variances"]),
                effects_mean=self._tensor(known["effects"]),
                effects_std=self._tensor(known["effects_std"]),
            )
            self.model = SequentialPopulationModel(self.model.buckets, prior)
            self._gain = qPerformanceInformationGain(self.model)
            self.updates[0] = self._hyperparameters()

    def _update_if_due(self) -> None:
        n = self.model.n
        due, variances = is_update(n)
        if not due or n in self.updates or n >= self.model.buckets.n_items:
            return
        model = self.model
        if n in self._replayed:
            known = self._replayed[n]
            model.set_hyperparameters(
                self._tensor(known["log_variances"]), self._tensor(known["effects"])
            )
        else:
            effects = model.fit_effects()
            model.set_hyperparameters(model.log_variances, effects)
            if variances:
                fitted, self.fits[n] = model.fit_variances()
                model.set_hyperparameters(fitted, effects)
        self.updates[n] = self._hyperparameters()

    def _hyperparameters(self) -> Hyperparameters:
        kernel = self.model.kernel
        return {
            "log_variances": self.model.log_variances.tolist(),
            "effects": kernel.effects.tolist(),
            "effects_std": kernel.effects_std.tolist(),
        }

    def _tensor(self, values: list[float]) -> Tensor:
        return self.model.prior_mean.new_tensor(values)


_PRIORS: dict[tuple[str, float], PopulationPrior] = {}
_REMEMBERED = 16


def _prior_of(fingerprint: str, tolerance: float, buckets: Buckets) -> PopulationPrior:
    """The prior, once for all targets of the same references in this process."""
    key = (fingerprint, tolerance)
    if key not in _PRIORS:
        while len(_PRIORS) >= _REMEMBERED:
            _PRIORS.pop(next(iter(_PRIORS)))
        _PRIORS[key] = fit_population_prior(buckets)
    found = _PRIORS[key]
    device = buckets.phi.device
    return PopulationPrior(
        found.log_variances.to(device),
        found.effects_mean.to(device),
        found.effects_std.to(device),
    )
