"""The population prior, conditioned item by item."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import Buckets
from gp_eval.kernels import PopulationKernel, PopulationStatistics
from gp_eval.linalg.population_table import PopulationTable
from gp_eval.means import PopulationMean
from gp_eval.models.population.effects import fit_effects
from gp_eval.models.population.prior import PopulationPrior
from gp_eval.models.sequential import SequentialBucketModel
from gp_eval.optim.lbfgsb import Fit
from gp_eval.optim.variance_components import Components, fit_variance_components

__all__ = ["SequentialPopulationModel"]


class SequentialPopulationModel(SequentialBucketModel):
    r"""BoTorch model of a target's scores under a population prior.

    As :class:`~gp_eval.models.SequentialBucketModel`, with noise in proportion to the
    working variance, :math:`e^{\nu} d_i^2`, in place of :math:`\sigma^2 N_b`: that of
    an item does not depend on how many others look like it.

    Args:
        buckets: The items and their buckets.
        prior: What the references suggest.
    """

    _log_noise: Tensor

    def __init__(self, buckets: Buckets, prior: PopulationPrior) -> None:
        statistics = PopulationStatistics.from_scores(buckets.phi, buckets.counts)
        kernel = PopulationKernel(statistics).to(buckets.phi.device)
        kernel.effects_mean.copy_(prior.effects_mean)
        kernel.effects_std.copy_(prior.effects_std)
        with torch.no_grad():
            kernel.log_variances.copy_(prior.log_variances[:-1])
            kernel.effects.copy_(prior.effects_mean)
        super().__init__(
            buckets, noise=1.0, covar_module=kernel, mean_module=PopulationMean(kernel)
        )
        self.prior = prior
        # A buffer, so that a state dict has the noise as well.
        self.register_buffer("_log_noise", prior.log_variances[-1].clone())
        self._follow_scale()

    @property
    def kernel(self) -> PopulationKernel:
        """The kernel, with the target's effects."""
        assert isinstance(self.covar_module, PopulationKernel)
        return self.covar_module

    @property
    def log_variances(self) -> Tensor:
        """Log-variances of the components and, last, of the noise, shape 5."""
        noise = self._log_noise.to(self.kernel.log_variances)
        return torch.cat([self.kernel.log_variances.detach(), noise.reshape(1)])

    def set_hyperparameters(self, log_variances: Tensor, effects: Tensor) -> None:
        """Use these from now on, and condition anew.

        Args:
            log_variances: Shape 5, the noise last.
            effects: Effects of the target, shape ``F``.
        """
        with torch.no_grad():
            self.kernel.log_variances.copy_(log_variances[:-1])
            self.kernel.effects.copy_(effects)
        self._log_noise = log_variances[-1].clone()
        self.refresh()

    def refresh(self) -> None:
        """Take over new hyperparameters: mean, scale and noise of every item."""
        self._follow_scale()
        super().refresh()

    def _follow_scale(self) -> None:
        with torch.no_grad():
            variance = self.kernel.scale(self.buckets.phi).square()
        self._set_noise(self._log_noise.exp() * variance / self.ability_counts)

    # Learning from the target

    def fit_effects(self) -> Tensor:
        """Effects of the target from its scores so far."""
        points = self.evaluated
        kernel = self.kernel
        return fit_effects(
            kernel.statistics,
            self.buckets.phi[self.point_ability[points]],
            self._scores[points],
            mean=kernel.effects_mean,
            std=kernel.effects_std,
        )

    def fit_variances(self) -> tuple[Tensor, Fit]:
        """Log-variances of highest posterior density at the present effects."""
        buckets = self.point_ability[self.evaluated]
        table = self.table
        assert isinstance(table, PopulationTable)
        scale, slope = table.scale[buckets], table.sensitivity[buckets]
        ratio = slope / scale
        outer = ratio.unsqueeze(-1) * ratio
        residuals = (self._scores[self.evaluated] - self.prior_mean[buckets]) / scale
        data = Components(
            matrices=table.working(buckets, ratio),
            fixed=table.effects(buckets, buckets) * outer,
            residuals=residuals.unsqueeze(-1),
        )
        return fit_variance_components(
            [data], self.prior.of_components(), start=self.log_variances
        )
