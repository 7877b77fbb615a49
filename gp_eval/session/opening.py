"""Opening a session without knowing of how many targets it is."""

from __future__ import annotations

from pathlib import Path

from gp_eval.data import References
from gp_eval.session.config import has_several_targets
from gp_eval.session.folder import CONFIG
from gp_eval.session.multi_target import MultiTargetSession, TrainingProgress
from gp_eval.session.session import Session

__all__ = ["open_session"]


def open_session(
    path: str | Path,
    *,
    references: References | None = None,
    read_only: bool = False,
    progress: TrainingProgress | None = None,
) -> Session | MultiTargetSession:
    """Resume a session of one target or of several, whichever the folder holds.

    A session that was made with a ``covar_module`` is opened by :meth:`Session.open`,
    which takes one.

    Args:
        path: The folder.
        references: If given, they must be those of the session.
        read_only: Only look; works while another process writes.
        progress: Told of every step while a model of several targets is trained.

    Raises:
        StateMismatchError: If the folder is damaged or does not fit the arguments.
        SessionLockedError: If another process has the session open for writing.
    """
    if has_several_targets(Path(path) / CONFIG):
        return MultiTargetSession.open(
            path, references=references, read_only=read_only, progress=progress
        )
    return Session.open(path, references=references, read_only=read_only)
