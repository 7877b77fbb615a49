"""BayesAME for several targets: Section 3.2 of the paper as a model of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from gp_eval.acquisition import qAverageInformationGain, qPerformanceInformationGain
from gp_eval.data import Buckets, References
from gp_eval.kernels import LMCKernel, default_latents
from gp_eval.means import ReferenceMean
from gp_eval.models.checkpoint import load_model, save_model
from gp_eval.models.hyperparameters import (
    read_hyperparameters,
    restore_hyperparameters,
    trainable,
)
from gp_eval.models.multi_target import SequentialMultiTargetModel
from gp_eval.models.multi_target_checks import check_design, check_training
from gp_eval.models.protocol import (
    Hyperparameters,
    LeaveOneOut,
    Performance,
    check_batch,
)
from gp_eval.models.weighted_prior import references_that_count
from gp_eval.optim import Fit, Progress, fit_adamw, make_lmc_objective, step_schedule

__all__ = ["MultiTargetBayesAME"]

MultiTargetSelection = Literal["round-robin", "average", "random"]


class MultiTargetBayesAME:
    r"""Several targets tied by a linear model of coregionalization.

    Each target has its own coreset; what one shows about the shared latents tells about
    the others. Weights, latents and :math:`\sigma^2` are learned by AdamW once the
    initial items are there, and again after every ``F`` evaluations a target. In the
    nearly unique regime items are chosen by information gain (Eq. (6) for each target),
    otherwise at random; estimates are Eq. (5). At ``n = N`` of a target its estimate is
    the mean and its variance 0.

    The first training acts at once: before it the weights are random draws and the
    estimates mean nothing. Later ones act from the next step on, as in Algorithm 1.
    ``F`` counts rounds over the targets: an update every ``F T`` evaluations.

    The initial :math:`\sigma^2` and the learning rate are those of Appendix C.1, by
    whether all reference scores are 0 or 1.

    Args:
        references: Complete reference scores.
        n_targets: ``T``.
        selection: ``"round-robin"``: the targets take turns; ``"average"``: the item of
            highest average gain, for a random target; ``"random"``: random items.
        initial: Share of the items that all targets are evaluated on first. With 0 the
            weights stay random draws until the first of the later trainings.
        noise: Initial :math:`\sigma^2`; default 0.1 for 0/1 scores, else 0.01.
        margin: :math:`N_0`.
        refit_every: The paper's ``F``; ``None`` trains only after the initial items.
        n_latents: ``L``; default ``T``. See :func:`~gp_eval.kernels.default_latents`.
        latents: Kernels over ``phi`` in place of the default ones. They are trained in
            place, so give every model its own.
        mean_module: Any mean over ``phi``; default Eq. (1). It is not trained.
        weights: How much each reference counts for all targets, ``K`` numbers >= 0, in
            place of ``latents`` and ``mean_module``; see
            :func:`~gp_eval.models.weighted_prior.weighted_prior`.
        learning_rate: Of AdamW; default 0.01 for 0/1 scores, else 0.001.
        weight_decay: Of AdamW.
        steps: Steps of the first training; halved each time, to no fewer than 50.
        seed: Fixes the initial weights.
        tolerance: For the buckets of continuous scores, see
            :meth:`~gp_eval.data.Buckets.from_references`.
        device: Where to compute; default the CPU.

    Attributes:
        updates (dict): Hyperparameters by number of evaluations at which they came.
        fits (dict): How each training ended, likewise.
        progress: Told ``(step, steps)`` while it trains.
    """

    def __init__(
        self,
        references: References,
        *,
        n_targets: int,
        selection: MultiTargetSelection = "round-robin",
        initial: float = 0.1,
        noise: float | None = None,
        margin: int = 10,
        refit_every: int | None = 50,
        n_latents: int | None = None,
        latents: Sequence[Kernel] | None = None,
        mean_module: Mean | None = None,
        weights: Sequence[float] | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 0.01,
        steps: int = 500,
        seed: int = 0,
        tolerance: float = 0.0,
        device: torch.device | str = "cpu",
    ) -> None:
        check_design(n_targets, selection, initial, refit_every, n_latents, latents)
        check_training(learning_rate, weight_decay, steps)
        self._fingerprint = references.fingerprint
        if weights is not None:
            if latents is not None or mean_module is not None:
                raise ValueError(
                    "weights: they make the latents and a mean; give them to these in "
                    "place of weights="
                )
            references, values = references_that_count(references, weights)
            latents = default_latents(n_latents or n_targets, weights=values)
            mean_module = ReferenceMean(weights=values / values.sum())
        buckets = Buckets.from_references(references, tolerance=tolerance)
        self.unique = buckets.unique(margin)
        binary = bool(((references.scores == 0) | (references.scores == 1)).all())
        self.n_targets, self.refit_every, self.steps = n_targets, refit_every, steps
        if learning_rate is None:
            learning_rate = 0.01 if binary else 0.001
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        n_items = buckets.n_items
        self.initial_items = max(round(initial * n_items), int(initial > 0.0))
        if latents is None:
            latents = default_latents(n_latents or n_targets)
        generator = torch.Generator().manual_seed(seed)
        self.model = SequentialMultiTargetModel(
            buckets.to(device),
            n_targets=n_targets,
            noise=(0.1 if binary else 0.01) if noise is None else noise,
            covar_module=LMCKernel(latents, n_targets, generator=generator),
            mean_module=mean_module,
        )
        self.updates: dict[int, Hyperparameters] = {}
        self.fits: dict[int, Fit] = {}
        self.progress: Progress | None = None
        self._replayed: dict[int, Hyperparameters] = {}
        self._gain: AcquisitionFunction | None = None
        self._began: int | None = None
        if self.unique and selection == "round-robin":
            self._gain = qPerformanceInformationGain(self.model)
        elif self.unique and selection == "average":
            self._gain = qAverageInformationGain(self.model)

    # The protocol of the harness

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in rows ``m x 2`` of item and target and their scores, in that order.

        Raises:
            ValueError: For a row out of range or evaluated before, or a score that is
                not finite; nothing is changed then.
        """
        model = self.model
        if items.ndim != 2 or items.shape[1] != 2:
            raise ValueError(
                f"items: expected rows [item, target], got {tuple(items.shape)}"
            )
        batch = check_batch(
            model.points(items),
            scores,
            n_items=model.n_items * self.n_targets,
            seen=model.seen,
            name=model.point_name,
        )
        for point, score in batch.items():
            self._update_if_due()
            model.append(point, score)

    def performance(self) -> Performance:
        """Eq. (5) and Eq. (2) of each target, with their joint covariance."""
        if self.model.n == self._first_update():
            self._update_if_due()
        covariance = self.model.performance_covariance_matrix()
        return Performance(
            self.model.performance_estimate(unique=self.unique),
            covariance.diagonal(),
            covariance,
        )

    def acquisition(self) -> AcquisitionFunction | None:
        """Information gain in the nearly unique regime, otherwise ``None``."""
        self._update_if_due()
        return self._gain

    @property
    def item_groups(self) -> Tensor:
        """Bucket of each item, shape ``N``: what the model cannot tell apart."""
        return self.model.buckets.item_bucket.cpu()

    def weighted_sums(self, weights: Tensor) -> Performance:
        """Posterior of sums of scores with weights ``m x N``, shape ``T x m``.

        The covariance is ``T x m x T x m``.
        """
        return Performance(*self.model.weighted_sums(weights))

    def leave_one_out(self) -> LeaveOneOut:
        """Each evaluated score as all others, of all targets, predict it."""
        points = torch.tensor(self.model.evaluated, dtype=torch.long)
        n_items = self.model.n_items
        rows = torch.stack([points % n_items, points // n_items], dim=-1)
        return LeaveOneOut(rows, *self.model.leave_one_out())

    def save(self, path: str | Path) -> None:
        """Write parameters and scores, with the fingerprint of the references."""
        save_model(path, self.model, self.updates, fingerprint=self._fingerprint)

    def load(self, path: str | Path) -> None:
        """Take over what :meth:`save` wrote into a fresh model of the same options.

        Raises:
            StateMismatchError: If the file is damaged, or from other references,
                targets or kernels, or this model has scores already.
        """
        self.updates = load_model(path, self.model, fingerprint=self._fingerprint)

    # Hyperparameters

    def _first_update(self) -> int | None:
        """The n at which the last target got its initial items, or :meth:`begin`."""
        if not self.initial_items:
            return 0
        if self._began is None and self.model.n >= self.initial_items * self.n_targets:
            counts = [0] * self.n_targets
            for n, point in enumerate(self.model.evaluated, start=1):
                counts[point // self.model.n_items] += 1
                if min(counts) >= self.initial_items:
                    self._began = n
                    break
        return self._began

    def begin(self) -> None:
        """Train for the first time with fewer scores than initial items, if need be.

        Where there is no score at all, that waits for the first one.
        """
        if self._first_update() is None:
            self._began = max(self.model.n, 1)
            self._update_if_due()

    def replay_updates(self, updates: Mapping[int, Hyperparameters]) -> None:
        """Use these hyperparameters at the given ``n`` instead of training."""
        self._replayed.update(updates)

    def _update_if_due(self) -> None:
        n, first = self.model.n, self._first_update()
        if n == 0 or first is None or n in self.updates:
            return
        late = n - first
        if n == self.n_targets * self.model.n_items:
            return
        every = None if self.refit_every is None else self.refit_every * self.n_targets
        if late == 0 or (every is not None and late % every == 0):
            self.refit()

    def refit(self) -> None:
        """Train on the scores so far and condition anew.

        Raises:
            ValueError: Before the first score.
        """
        model, n = self.model, self.model.n
        if not n:
            raise ValueError("refit needs at least one score")
        parameters = [
            (f"{part}.{name}", parameter)
            for part in ("covar_module", "likelihood")
            for name, parameter in trainable(getattr(model, part))
        ]
        if n in self._replayed:
            restore_hyperparameters(parameters, self._replayed[n])
        else:
            objective = make_lmc_objective(
                model.covar_module,
                model.likelihood,
                model.buckets.phi,
                model.pair_scores(),
                distances=model.table.shared,
            )
            self.fits[n] = fit_adamw(
                objective,
                steps=step_schedule(len(self.updates), first=self.steps),
                learning_rate=self.learning_rate,
                weight_decay=self.weight_decay,
                progress=self.progress,
            )
        self.updates[n] = read_hyperparameters(parameters)
        model.refresh()
