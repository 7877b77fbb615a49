"""A run of several targets that survives everything: ask, tell, resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from gp_eval.data import References
from gp_eval.errors import ScoreError
from gp_eval.models import make_model
from gp_eval.models.protocol import MultiTargetModel, Performance
from gp_eval.models.registry import takes_seed
from gp_eval.multi_target_loop import MultiTargetLoop
from gp_eval.result import StopReason
from gp_eval.session.base import BaseSession, Pair
from gp_eval.session.checks import check_targets
from gp_eval.session.config import MultiTargetConfig, common_settings
from gp_eval.session.folder import SessionFolder, check_unused
from gp_eval.session.targets import check_takes_targets
from gp_eval.stopping import StoppingRule

__all__ = ["MultiTargetSession", "TrainingProgress"]

TrainingProgress = Callable[[int, int], None]
"""Called with the step and the number of steps while a model is trained."""


class MultiTargetSession(BaseSession[MultiTargetConfig]):
    """Several targets on one benchmark, in a folder that can be resumed at any moment.

    What is asked for and told is a pair ``(target, item)``. A target that has met its
    rule is asked for no more items and keeps informing the others. Otherwise as
    :class:`~gp_eval.Session`, with the same guarantees.

    Use :meth:`create` or :meth:`open`, not the constructor.

    Example:
        >>> session = MultiTargetSession.create("run/", references, targets=["a", "b"])
        >>> while not session.done:
        ...     for target, item in session.pending or session.ask(8):
        ...         session.tell(target, item, score(target, item))
        >>> [result.mean for result in session.estimates()]
    """

    def __init__(
        self, folder: SessionFolder[MultiTargetConfig], model: MultiTargetModel
    ) -> None:
        config = folder.config

        def begin() -> MultiTargetLoop:
            self._joint = MultiTargetLoop(
                model, folder.references, stop=config.stop, seed=config.seed
            )
            return self._joint

        super().__init__(
            folder, model=model, loop=begin, targets=config.targets, named=True
        )

    # Making and opening

    @classmethod
    def create(
        cls,
        path: str | Path,
        references: References,
        *,
        targets: Sequence[str],
        model: str = "bayesame-multi",
        model_options: Mapping[str, Any] | None = None,
        stop: StoppingRule | None = None,
        seed: int = 0,
        progress: TrainingProgress | None = None,
    ) -> MultiTargetSession:
        """Start a session in a new or empty folder and hold it open for writing.

        Args:
            path: The folder.
            references: Complete reference scores; a copy is kept in the folder.
            targets: Names of the ``T`` models to evaluate, none of them a reference.
            model: A registered model of several targets.
            model_options: Options of that model; JSON values only. Its ``seed``, if it
                takes one, is that of the session unless it is given here.
            stop: When to stop, each target by itself and without ``max_cost``; default
                that of :class:`~gp_eval.StoppingRule`.
            seed: Fixes every random choice of the session.
            progress: Told of every step while the model is trained.

        Raises:
            StateMismatchError: If the folder holds a session already.
            SessionLockedError: If another process is creating it.
            DataError: If there is no target, a name is empty or there twice, or one is
                among the references.
            ValueError: If the model or its options cannot be used.
        """
        path = Path(path).resolve()
        names = check_targets("targets", targets, references)
        check_takes_targets(model, several=True)
        options = dict(model_options or {})
        if "n_targets" in options:
            raise ValueError("model_options: 'n_targets' follows from the targets")
        if takes_seed(model):
            options.setdefault("seed", seed)
        check_unused(path)
        config = MultiTargetConfig(
            targets=names,
            **common_settings(
                references,
                model=model,
                model_options=options,
                stop=stop,
                seed=seed,
            ),
        )
        # Everything that can be wrong with the arguments shows before a file is made.
        made = _make_model(config, references, progress)
        MultiTargetLoop(made, references, stop=config.stop)
        made.performance()  # a first belief may have to learn its intervals
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
        read_only: bool = False,
        progress: TrainingProgress | None = None,
    ) -> MultiTargetSession:
        """Resume a session.

        Args:
            path: The folder.
            references: If given, they must be those of the session.
            read_only: Only look; works while another process writes.
            progress: Told of every step while the model is trained.

        Raises:
            StateMismatchError: If the folder is damaged or does not fit the arguments.
            SessionLockedError: If another process has the session open for writing.
        """
        folder = SessionFolder.open(
            Path(path).resolve(),
            MultiTargetConfig,
            references=references,
            read_only=read_only,
        )
        with folder.closing_on_failure():
            made = _make_model(folder.config, folder.references, progress)
            session = cls(folder, made)
            if not read_only:  # what a kill left unlearned is learned and kept
                session.performance()
        if not read_only:
            session._record_updates()
        return session

    # Asking and telling

    @property
    def stop_reasons(self) -> dict[str, StopReason | None]:
        """Why each target stopped, see :class:`~gp_eval.loop.Result`."""
        return dict(zip(self.targets, self._joint.stop_reasons, strict=True))

    @property
    def pending(self) -> list[Pair]:
        """Pairs ``(target, item)`` asked and not told, in the order of asking."""
        return self._pending()

    def ask(self, q: int = 1) -> list[Pair]:
        """The next ``q`` pairs ``(target, item)``; fewer near the end, none once done.

        Up to the next hyperparameter update, ``ask(q)`` equals ``q`` single asks. The
        random items that all targets start with have to be told before others are
        asked: until then there may be nothing to ask. After a resume, evaluate
        :attr:`pending` first.

        Raises:
            ValueError: For ``q < 1``.
        """
        return self._ask(q)

    def tell(self, target: str, item: str, score: float) -> None:
        """Record the score of a target on one item; see :meth:`tell_all`."""
        self.tell_all({(target, item): score})

    def tell_all(self, scores: Mapping[Pair, float]) -> None:
        """Record scores by ``(target, item)``, in any order: all of them or none.

        Telling the same score again changes nothing, so a caller may repeat what it
        is not sure to have told, such as after a kill in the middle.

        Raises:
            ScoreError: For an unknown target or item, a score that is not a finite
                number, or a pair told before with another score. Nothing is changed
                then.
        """
        if wrong := [key for key in scores if not _is_pair(key)]:
            raise ScoreError(f"scores: expected (target, item), got {wrong[0]!r}")
        self._tell(scores)

    @property
    def skipped(self) -> dict[Pair, str]:
        """Pairs that could not be evaluated and stay unobserved, each with why."""
        return self._skipped()

    def skip(self, pairs: Mapping[Pair, str]) -> None:
        """Leave pairs unobserved; see :meth:`gp_eval.Session.skip`."""
        if wrong := [key for key in pairs if not _is_pair(key)]:
            raise ScoreError(f"pairs: expected (target, item), got {wrong[0]!r}")
        self._skip(pairs)

    @property
    def initial_left(self) -> int:
        """Scores of initial items to come; until then the estimates mean nothing."""
        return self._joint.initial_left()

    def performance(self) -> Performance:
        """Joint belief about the targets' benchmark scores, with its covariance."""
        return self._joint.performance()


def _is_pair(key: object) -> bool:
    return isinstance(key, tuple) and len(key) == 2


def _make_model(
    config: MultiTargetConfig, references: References, progress: TrainingProgress | None
) -> MultiTargetModel:
    made: Any = make_model(
        config.model,
        references,
        n_targets=len(config.targets),
        **config.model_options,
    )
    if progress is not None and hasattr(made, "progress"):
        made.progress = progress
    return cast(MultiTargetModel, made)
