"""BayesAME for one target: Algorithm 1 of the paper as a model of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from gp_eval.acquisition import BatchSelection, qPerformanceInformationGain
from gp_eval.data import Buckets, References
from gp_eval.estimators import out_of_sample_estimate, posterior_mse
from gp_eval.models.hyperparameters import (
    read_hyperparameters,
    restore_hyperparameters,
    trainable,
)
from gp_eval.models.protocol import (
    Hyperparameters,
    LeaveOneOut,
    Performance,
    check_batch,
)
from gp_eval.models.sequential import SequentialBucketModel
from gp_eval.models.weighted_prior import weighted_prior
from gp_eval.optim import Fit, fit_kernel, make_objective
from gp_eval.optim.lbfgsb import Parametrization

__all__ = ["BayesAME"]


class BayesAME:
    r"""Algorithm 1 of the BayesAME paper without its loop, :func:`~gp_eval.evaluate`.

    In the nearly unique regime :math:`B \ge N - N_0` it selects by information gain
    (Eq. (6)) and reports Eq. (3) with :math:`\sigma^2 = 10^{-4}`; otherwise it selects
    at random and reports Eq. (4) with :math:`\sigma^2 = 10^{-1}`. The variance is
    Eq. (2). At ``n = N`` the estimate is the mean and the variance 0.

    Every ``refit_every`` evaluations the kernel is fitted (Eq. (11)). The update comes
    after the estimate of that step and acts from the next one on, as in Algorithm 1.

    The values of :math:`\sigma^2` and the start :math:`\alpha = \beta = 1` suit scores
    of order 1. Rescale others, or give ``noise`` and ``parametrization="log"``; what
    ``fits`` holds tells how each fit ended.

    Args:
        references: Complete reference scores.
        selection: ``"auto"`` as above, ``"random"`` for BayesAME-RS.
        noise: :math:`\sigma^2`; default by regime.
        margin: :math:`N_0`.
        batch: ``|A|`` of Appendix B.1: select by optimal batches of so many items
            (Eq. (13)) in place of Eq. (6). Without effect where items are random.
        lookahead: With ``batch``, whether one item of the batch is evaluated, drawn at
            random, before the next batch is planned (non-myopic), or all (myopic).
        refit_every: The paper's ``F``; ``None`` never fits.
        covar_module: Any kernel over ``phi``; default Eq. (1). It is trained in place,
            so give every model its own.
        mean_module: Any mean over ``phi``; default Eq. (1). Its parameters are taken as
            they are, not fitted.
        weights: How much each reference counts, ``K`` numbers >= 0 (Appendix B.2), in
            place of both modules; see
            :func:`~gp_eval.models.weighted_prior.weighted_prior`.
        parametrization: Of the optimizer, see :func:`~gp_eval.optim.fit_kernel`.
        tolerance: For the buckets of continuous scores, see
            :meth:`~gp_eval.data.Buckets.from_references`.
        device: Where to compute; default the CPU.
    """

    def __init__(
        self,
        references: References,
        *,
        selection: Literal["auto", "random"] = "auto",
        batch: int = 1,
        lookahead: bool = False,
        noise: float | None = None,
        margin: int = 10,
        refit_every: int | None = 50,
        covar_module: Kernel | None = None,
        mean_module: Mean | None = None,
        weights: Sequence[float] | None = None,
        parametrization: Parametrization = "raw",
        tolerance: float = 0.0,
        device: torch.device | str = "cpu",
    ) -> None:
        if selection not in ("auto", "random"):
            raise ValueError(
                f"selection: expected 'auto' or 'random', got {selection!r}"
            )
        if refit_every is not None and refit_every < 1:
            raise ValueError(f"refit_every: expected >= 1 or None, got {refit_every}")
        references, covar_module, mean_module = weighted_prior(
            references, weights, covar_module, mean_module
        )
        buckets = Buckets.from_references(references, tolerance=tolerance)
        self.unique = buckets.unique(margin)
        self.parametrization: Parametrization = parametrization
        self.refit_every = refit_every
        if noise is None:
            noise = 1e-4 if self.unique else 1e-1
        self.model = SequentialBucketModel(
            buckets.to(device),
            noise=noise,
            covar_module=covar_module,
            mean_module=mean_module,
        )
        self.updates: dict[int, Hyperparameters] = {}
        self.fits: dict[int, Fit] = {}
        self._replayed: dict[int, Hyperparameters] = {}
        active = self.unique and selection == "auto"
        self._gain = qPerformanceInformationGain(self.model) if active else None
        batches = BatchSelection(batch, lookahead)
        self.batch_selection = batches if active and batch > 1 else None

    # The protocol of the harness

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items and their scores, one after the other.

        For given hyperparameters the order does not matter; the ones fitted at
        ``n = F, 2F ...`` depend on which items came before.

        Raises:
            ValueError: For an item out of range or evaluated before, or a score that is
                not finite; nothing is changed then.
        """
        model = self.model
        n_items, seen = model.buckets.n_items, model.seen
        batch = check_batch(items, scores, n_items=n_items, seen=seen)
        for item, score in batch.items():
            self._update_if_due()
            model.append(item, score)

    def performance(self) -> Performance:
        """Eq. (5) and Eq. (2) after the last item.

        An update that is due by then acts once the next item is selected or taken in.
        """
        return Performance(
            self.model.performance_estimate(unique=self.unique),
            self.model.performance_variance(),
        )

    def acquisition(self) -> AcquisitionFunction | None:
        """Information gain in the nearly unique regime, otherwise ``None``."""
        self._update_if_due()
        return self._gain

    @property
    def adapts_off_range(self) -> bool:
        """Whether it reports Eq. (4) of random items: a control variate already."""
        return not self.unique

    @property
    def item_groups(self) -> Tensor:
        """Bucket of each item, shape ``N``: what the model cannot tell apart."""
        return self.model.buckets.item_bucket.cpu()

    def weighted_sums(self, weights: Tensor) -> Performance:
        """Posterior of sums of scores with weights ``m x N``, shape ``m``.

        The covariance is ``m x m``.
        For ``w = 1 / N`` it is Eqs. (2), (3), whatever the regime reports.
        """
        return Performance(*self.model.weighted_sums(weights))

    def leave_one_out(self) -> LeaveOneOut:
        """Each evaluated score as the others predict it."""
        items = torch.tensor(self.model.evaluated, dtype=torch.long)
        return LeaveOneOut(items, *self.model.leave_one_out())

    # Hyperparameters

    def replay_updates(self, updates: Mapping[int, Hyperparameters]) -> None:
        """Use these hyperparameters at the given ``n`` instead of optimising."""
        self._replayed.update(updates)

    def _update_if_due(self) -> None:
        n = self.model.n
        if self.refit_every is None or n == 0 or n % self.refit_every:
            return
        if n not in self.updates and n < self.model.buckets.n_items:
            self.refit()

    def refit(self) -> None:
        """Fit the kernel to the scores so far (Eq. (11)) and condition anew."""
        kernel, n = self.model.covar_module, self.model.n
        parameters = trainable(kernel)
        if n in self._replayed:
            restore_hyperparameters(parameters, self._replayed[n])
        else:
            objective = make_objective(
                kernel,
                self.model.buckets.phi,
                self.model.prior_mean,
                self.model.observations(shortest=True),
                table=self.model.table,
            )
            self.fits[n] = fit_kernel(
                kernel, objective, parametrization=self.parametrization
            )
        self.updates[n] = read_hyperparameters(parameters)
        self.model.refresh()

    # Diagnostics

    def posterior_mse(self) -> Tensor:
        """Posterior mean squared error of the reported estimate (Appendix A.3)."""
        reported = self.performance()
        return posterior_mse(
            reported.variance, self.model.performance_mean(), reported.mean
        )

    def out_of_sample_estimate(self) -> Tensor:
        """The unbiased control variate estimate of Appendix A.2.

        Raises:
            ValueError: Before the first item.
        """
        if not self.model.n:
            raise ValueError("out_of_sample_estimate needs at least one evaluated item")
        model = self.model
        weights = model.buckets.item_weights[model.evaluated]
        return out_of_sample_estimate(
            model.table, model.prior_mean, model.observations(), weights, model.totals
        )
