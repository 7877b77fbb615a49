"""BayesAME with a logit-normal prior, as a model of the harness."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from gp_eval.acquisition import qPerformanceInformationGain
from gp_eval.data import Buckets, References
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.means import ReferenceMean
from gp_eval.models.bayesame import BayesAME
from gp_eval.models.hyperparameters import (
    read_hyperparameters,
    restore_hyperparameters,
    trainable,
)
from gp_eval.models.logit.abilities import Theta
from gp_eval.models.logit.logit_model import LogitModel
from gp_eval.models.logit.scores import (
    BinaryScores,
    ContinuousScores,
    ScoreKind,
    kind_of,
)
from gp_eval.models.protocol import Hyperparameters, Performance, check_batch
from gp_eval.models.weighted_prior import weighted_prior
from gp_eval.optim import Fit, fit_kernel
from gp_eval.optim.lbfgsb import Parametrization

__all__ = ["BayesAMELogit"]

_AUXILIARY = "auxiliary."


class BayesAMELogit:
    r"""BayesAME with logit-normal abilities, Appendix B.3 of the BayesAME paper.

    Regimes, estimators and the rhythm of updates are those of
    :class:`~gp_eval.models.BayesAME`; at ``n = N`` the estimate is the mean and the
    variance 0. The kernel is fitted to the log-marginal likelihood of the logits, or to
    Laplace's of binary scores. See :class:`~gp_eval.models.logit.LogitModel` for the
    belief.

    What the paper leaves open: ``f`` has the kernel of Eq. (1) on the scores of the
    references, not on their logits, and the prior mean of
    :func:`~gp_eval.models.logit.logit_model.prior_logits`; :math:`\sigma^2` has
    BayesAME's values, in squared logits; the variance of the benchmark score and the
    information gain come from the linearisation. The gain depends on the scores, so
    asking for several items at once selects others than asking one by one.

    Args:
        references: Complete reference scores in [0, 1].
        selection: ``"auto"``, or ``"random"`` for BayesAME-Logit-RS.
        scores: ``"binary"`` (Bernoulli) or ``"continuous"`` (Gaussian logits); default
            by whether all reference scores are 0 or 1.
        theta: How :math:`E[\sigma(f)]` is found. ``"linear"``, the paper's choice,
            around the posterior mean of a :class:`~gp_eval.models.BayesAME` of the same
            prior that takes in the same items and is fitted by itself; ``"probit"``
            (MacKay's, which divides by the root that the paper multiplies by); or
            ``"monte-carlo"``.
        clip: Continuous scores are clipped to ``[clip, 1 - clip]`` for the latent
            values (observed ones count as they are), reference points of ``"linear"``
            as well: at 0 or 1 they would have no logit.
        draws: Number of draws of ``"monte-carlo"``.
        seed: Fixes these draws.
        noise: :math:`\sigma^2` of continuous scores, in squared logits; default
            by regime.
        margin: :math:`N_0`.
        refit_every: The paper's ``F``; ``None`` never fits.
        covar_module: Any kernel over ``phi``, for ``f``; the auxiliary model of
            ``"linear"`` gets a copy.
        mean_module: Any mean over ``phi`` in score units, within [0, 1].
        weights: As for :class:`~gp_eval.models.BayesAME`.
        parametrization: Of the optimizer, see :func:`~gp_eval.optim.fit_kernel`.
        tolerance: For the buckets of continuous scores.

    Raises:
        ValueError: For scores outside [0, 1] or an option out of range.
    """

    def __init__(
        self,
        references: References,
        *,
        selection: Literal["auto", "random"] = "auto",
        scores: ScoreKind | None = None,
        theta: Theta = "linear",
        clip: float = 0.01,
        draws: int = 1000,
        seed: int = 0,
        noise: float | None = None,
        margin: int = 10,
        refit_every: int | None = 50,
        covar_module: Kernel | None = None,
        mean_module: Mean | None = None,
        weights: Sequence[float] | None = None,
        parametrization: Parametrization = "raw",
        tolerance: float = 0.0,
    ) -> None:
        _check(selection=selection, theta=theta, clip=clip, draws=draws, noise=noise)
        if refit_every is not None and refit_every < 1:
            raise ValueError(f"refit_every: expected >= 1 or None, got {refit_every}")
        references, covar_module, mean_module = weighted_prior(
            references, weights, covar_module, mean_module
        )
        buckets = Buckets.from_references(references, tolerance=tolerance)
        self.unique = buckets.unique(margin)
        self.refit_every, self.clip = refit_every, clip
        self.parametrization: Parametrization = parametrization
        self.kind = _checked_kind(scores, kind_of(buckets.phi), noise)
        self.auxiliary: BayesAME | None = None
        if theta == "linear":
            self.auxiliary = BayesAME(
                references,
                selection="random",
                margin=margin,
                refit_every=None,
                covar_module=copy.deepcopy(covar_module),
                mean_module=copy.deepcopy(mean_module),
                parametrization=parametrization,
                tolerance=tolerance,
            )
        if noise is None:
            noise = 1e-4 if self.unique else 1e-1
        self.model = LogitModel(
            buckets,
            scores=BinaryScores()
            if self.kind == "binary"
            else ContinuousScores(noise * buckets.counts, clip),
            covar_module=covar_module or ReferenceScoreKernel(),
            mean_module=mean_module or ReferenceMean(),
            draws=_normal(draws, seed) if theta == "monte-carlo" else None,
        )
        self.updates: dict[int, Hyperparameters] = {}
        self.fits: dict[int, Fit] = {}
        self._replayed: dict[int, Hyperparameters] = {}
        active = self.unique and selection == "auto"
        self._gain = qPerformanceInformationGain(self.model) if active else None
        self._refer()

    # The protocol of the harness

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items and their scores, one after the other.

        Raises:
            ValueError: For an item out of range or evaluated before, or a score that
                the likelihood cannot have; nothing is changed then.
        """
        model = self.model
        batch = check_batch(items, scores, n_items=model.n_items, seen=model.seen)
        model.scores.check(batch)
        for item, score in batch.items():
            self._update_if_due()
            model.append(item, score)
            if self.auxiliary is not None:
                self.auxiliary.model.append(item, score)
        self._refer()

    def check_score(self, score: float) -> None:
        """Raise ``ValueError`` for a score that the likelihood cannot have."""
        self.model.scores.check_score(score)

    def performance(self) -> Performance:
        """Eq. (5) and Eq. (2), linearised, after the last item."""
        return Performance(
            self.model.performance_estimate(unique=self.unique),
            self.model.performance_variance(),
        )

    def acquisition(self) -> AcquisitionFunction | None:
        """Information gain in the nearly unique regime, otherwise ``None``."""
        self._update_if_due()
        return self._gain

    @property
    def item_groups(self) -> Tensor:
        """Bucket of each item, shape ``N``: what the model cannot tell apart."""
        return self.model.buckets.item_bucket

    def _refer(self) -> None:
        """Linearise around what the auxiliary model believes now."""
        if self.auxiliary is not None:
            abilities = self.auxiliary.model.engine.mean
            self.model.set_reference(abilities.clamp(self.clip, 1.0 - self.clip))

    # Hyperparameters

    def replay_updates(self, updates: Mapping[int, Hyperparameters]) -> None:
        """Use these hyperparameters at the given ``n`` instead of optimising."""
        self._replayed.update(updates)

    def _update_if_due(self) -> None:
        n = self.model.n
        if self.refit_every is None or n == 0 or n % self.refit_every:
            return
        if n not in self.updates and n < self.model.n_items:
            self.refit()

    def refit(self) -> None:
        """Fit the kernel, and that of the auxiliary model, to the scores so far."""
        kernel, n = self.model.covar_module, self.model.n
        parameters, replayed = trainable(kernel), self._replayed.get(n)
        if replayed is not None:
            restore_hyperparameters(parameters, replayed)
        else:
            self.fits[n] = fit_kernel(
                kernel, self.model.objective(), parametrization=self.parametrization
            )
        self.updates[n] = read_hyperparameters(parameters)
        if self.auxiliary is not None:
            if replayed is not None:
                known = {
                    name.removeprefix(_AUXILIARY): value
                    for name, value in replayed.items()
                    if name.startswith(_AUXILIARY)
                }
                self.auxiliary.replay_updates({n: known})
            self.auxiliary.refit()
            found = self.auxiliary.updates[n].items()
            self.updates[n].update({_AUXILIARY + name: value for name, value in found})
        self.model.refresh()
        self._refer()


def _normal(draws: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(draws, generator=generator, dtype=torch.float64)


def _check(
    *, selection: str, theta: str, clip: float, draws: int, noise: float | None
) -> None:
    if selection not in ("auto", "random"):
        raise ValueError(f"selection: expected 'auto' or 'random', got {selection!r}")
    if theta not in get_args(Theta):
        raise ValueError(
            f"theta: expected one of {list(get_args(Theta))}, got {theta!r}"
        )
    if not 0.0 < clip < 0.5:
        raise ValueError(f"clip: expected 0 < clip < 0.5, got {clip}")
    if draws < 1:
        raise ValueError(f"draws: expected at least 1, got {draws}")
    if noise is not None and not 0.0 < noise < float("inf"):
        raise ValueError(f"noise: expected sigma^2 > 0, got {noise}")


def _checked_kind(
    wanted: ScoreKind | None, found: ScoreKind, noise: float | None
) -> ScoreKind:
    kind = wanted or found
    if kind not in get_args(ScoreKind):
        raise ValueError(
            f"scores: expected one of {list(get_args(ScoreKind))} or None, got {kind!r}"
        )
    if kind == "binary" and noise is not None:
        raise ValueError("noise: binary scores have no sigma^2; leave it out")
    return kind
