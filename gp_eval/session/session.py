"""A run of one target that survives everything: ask, tell, resume."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpytorch.kernels import Kernel

from gp_eval.alarm import OnAlarm
from gp_eval.costs import ItemCosts
from gp_eval.data import References
from gp_eval.loop import EvaluationLoop
from gp_eval.models import PerformanceModel, make_model
from gp_eval.result import Result, StopReason
from gp_eval.session.base import BaseSession
from gp_eval.session.checks import check_targets
from gp_eval.session.config import CostRecord, SessionConfig, common_settings
from gp_eval.session.folder import SessionFolder, check_unused
from gp_eval.session.kernel import describe_kernel, restore_kernel
from gp_eval.session.one_target import OneTarget
from gp_eval.session.targets import check_takes_targets
from gp_eval.stopping import StoppingRule

__all__ = ["Session"]


class Session(BaseSession[SessionConfig]):
    """One target on one benchmark, in a folder that can be resumed at any moment.

    Every score is on disk before :meth:`tell` returns, every asked item before
    :meth:`ask` does. :meth:`open` replays the events, so that a killed run goes on
    with the same next item and the same numbers. One process writes at a time.

    Use :meth:`create` or :meth:`open`, not the constructor.

    Example:
        >>> session = Session.create("run/", references, target="my-model")
        >>> while not session.done:
        ...     for item in session.pending or session.ask(8):
        ...         session.tell(item, score(item))
        >>> session.estimate().mean
    """

    def __init__(
        self, folder: SessionFolder[SessionConfig], model: PerformanceModel
    ) -> None:
        config = folder.config
        super().__init__(
            folder,
            model=model,
            loop=lambda: OneTarget(_make_loop(config, folder.references, model)),
            targets=[config.target],
            named=False,
        )

    # Making and opening

    @classmethod
    def create(
        cls,
        path: str | Path,
        references: References,
        *,
        target: str,
        model: str = "bayesame",
        model_options: Mapping[str, Any] | None = None,
        covar_module: Kernel | None = None,
        stop: StoppingRule | None = None,
        seed: int = 0,
        costs: Mapping[str, float] | None = None,
        cost_aware: bool | None = None,
        on_alarm: OnAlarm = "fallback",
    ) -> Session:
        """Start a session in a new or empty folder and hold it open for writing.

        Args:
            path: The folder.
            references: Complete reference scores; a copy is kept in the folder.
            target: Name of the model to evaluate; it must not be a reference.
            model: A registered model, see :func:`~gp_eval.make_model`.
            model_options: Options of that model; JSON values only.
            covar_module: A GPyTorch kernel over reference score vectors, for models
                that take one. It is copied, and must be passed to :meth:`open` again.
            stop: When to stop; default that of :class:`~gp_eval.StoppingRule`.
            seed: Fixes every random choice of the session.
            costs: What each item costs, by id, in any unit; kept in the folder. With
                ``max_cost`` in ``stop`` the run asks for no item that costs more than
                is left, pending ones included.
            cost_aware: Select by information per cost; default where there are costs
                and the model selects by information.
            on_alarm: What to do when the target leaves what its references span:
                ``"fallback"`` draws further items at random and estimates by that,
                ``"warn"`` goes on with the model.

        Raises:
            StateMismatchError: If the folder holds a session already.
            SessionLockedError: If another process is creating it.
            DataError: If the target has no name or is among the references, or an item
                has no cost that is a finite number >= 0.
            ValueError: If the model, its options or the stopping rule cannot be used.
        """
        path = Path(path).resolve()
        check_targets("target", [target], references)
        check_takes_targets(model, several=False)
        check_unused(path)
        kernel = copy.deepcopy(covar_module)
        if kernel is not None:
            kernel = kernel.double()
        config = SessionConfig(
            target=target,
            covar_module=None
            if kernel is None
            else describe_kernel(kernel, references),
            on_alarm=on_alarm,
            **common_settings(
                references,
                model=model,
                model_options=model_options,
                stop=stop,
                seed=seed,
            ),
        )
        # Everything that can be wrong with the arguments shows before a file is made.
        made = _make_model(config, references, kernel)
        known = None if costs is None else ItemCosts.of_items(costs, references.items)
        trial = EvaluationLoop(
            made, references, stop=config.stop, costs=known, cost_aware=cost_aware
        )
        if known is not None and trial.spending is not None:
            record = CostRecord.of(known, cost_aware=trial.spending.cost_aware)
            config = config.model_copy(update={"costs": record})
        folder = SessionFolder.create(path, config, references)
        with folder.closing_on_failure():
            session = cls(folder, made)
        session._record_updates()
        return session

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        references: References | None = None,
        covar_module: Kernel | None = None,
        read_only: bool = False,
    ) -> Session:
        """Resume a session.

        Args:
            path: The folder.
            references: If given, they must be those of the session.
            covar_module: The kernel that :meth:`create` was given, if it was.
            read_only: Only look; works while another process writes.

        Raises:
            StateMismatchError: If the folder is damaged or does not fit the arguments.
            SessionLockedError: If another process has the session open for writing.
        """
        folder = SessionFolder.open(
            Path(path).resolve(),
            SessionConfig,
            references=references,
            read_only=read_only,
        )
        with folder.closing_on_failure():
            kernel = restore_kernel(
                folder.config.covar_module, covar_module, folder.references
            )
            return cls(folder, _make_model(folder.config, folder.references, kernel))

    # Asking and telling

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it stopped, see :class:`~gp_eval.loop.Result`."""
        return self._loop.stop_reasons[0]

    @property
    def pending(self) -> list[str]:
        """Items asked and not told, in the order of asking."""
        return [item for _, item in self._pending()]

    def ask(self, q: int = 1) -> list[str]:
        """The next ``q`` items to evaluate; fewer near the end, none once done.

        Up to the next hyperparameter update, ``ask(q)`` equals ``q`` single asks.
        After a resume, evaluate :attr:`pending` first: they are not handed out again,
        and while they use up the budget there is nothing to ask.

        Raises:
            ValueError: For ``q < 1``.
        """
        return [item for _, item in self._ask(q)]

    def tell(self, item: str, score: float) -> None:
        """Record the score of one item; see :meth:`tell_all`."""
        self.tell_all({item: score})

    def tell_all(self, scores: Mapping[str, float]) -> None:
        """Record scores, asked for or not, in any order: all of them or none.

        Telling the same score again changes nothing, so a caller may repeat what it
        is not sure to have told, such as after a kill in the middle.

        Raises:
            ScoreError: For an unknown item, a score that is not a finite number, or
                an item told before with another score. Nothing is changed then.
        """
        target = self.config.target
        self._tell({(target, item): score for item, score in scores.items()})

    @property
    def skipped(self) -> dict[str, str]:
        """Items that could not be evaluated and stay unobserved, each with why."""
        return {item: reason for (_, item), reason in self._skipped().items()}

    def skip(self, items: Mapping[str, str]) -> None:
        """Leave items unobserved that cannot be evaluated: all of them or none.

        They count among the ``N`` items all the same, are asked no more, and take none
        of the budget. A score told later is taken in.

        Args:
            items: Why, by item.

        Raises:
            ScoreError: For an unknown item, or one that has a score. Nothing is changed
                then.
        """
        target = self.config.target
        self._skip({(target, item): reason for item, reason in items.items()})

    def estimate(self) -> Result:
        """Estimate, 95 % interval, and what it rests on."""
        return self.estimates()[0]

    @property
    def costs(self) -> ItemCosts | None:
        """What items cost, if the session was given costs."""
        record = self.config.costs
        return None if record is None else record.read(self.config.items)


def _make_loop(
    config: SessionConfig, references: References, model: PerformanceModel
) -> EvaluationLoop:
    record = config.costs
    return EvaluationLoop(
        model,
        references,
        stop=config.stop,
        seed=config.seed,
        costs=None if record is None else record.read(config.items),
        cost_aware=None if record is None else record.cost_aware,
        on_alarm=config.on_alarm,
    )


def _make_model(
    config: SessionConfig, references: References, kernel: Kernel | None
) -> PerformanceModel:
    options = dict(config.model_options)
    if kernel is not None:
        options["covar_module"] = kernel
    return make_model(config.model, references, **options)
