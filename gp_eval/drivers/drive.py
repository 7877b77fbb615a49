"""A session driven to its stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gp_eval.drivers.attempts import Attempts
from gp_eval.drivers.on_error import OnError
from gp_eval.drivers.protocol import Driver
from gp_eval.drivers.rounds import Report, Rounds
from gp_eval.drivers.settings import check_settings, digest, write_settings
from gp_eval.session import MultiTargetSession, Session

__all__ = ["drive"]


def drive(
    session: Session | MultiTargetSession,
    driver: Driver,
    *,
    batch: int = 16,
    on_error: OnError | str = "retry",
    accept_changes: bool = False,
    report: Report | None = None,
) -> None:
    """Evaluate until the session stops.

    Every score is on disk once its batch is complete. After an interruption of any kind
    the same call goes on: scores that the tool had written are taken up, items without
    one are evaluated, and the results are those of a run without interruption.

    Args:
        session: Open for writing.
        driver: The tool.
        batch: Items handed to the tool at once.
        on_error: ``"retry"``, ``"skip"`` or ``"score:0"``, see
            :class:`~gp_eval.drivers.OnError`.
        accept_changes: Go on although the driver's settings are not those of before.
        report: Told what happens, see :data:`~gp_eval.drivers.rounds.Report`.

    Raises:
        StateMismatchError: If the session was driven with other settings.
        DriverError: If the tool fails; what was scored is told.

    Example:
        >>> driver = CommandDriver(["./score.sh", "{items}", "{scores}"])
        >>> with Session.open("run/") as session:
        ...     drive(session, driver, on_error="skip")
    """
    if batch < 1:
        raise ValueError(f"batch: expected 1 or more, got {batch!r}")
    policy = OnError.parse(on_error) if isinstance(on_error, str) else on_error
    report = report or _silent
    if not accept_changes:
        check_settings(session.path, driver.name, driver.settings)
    for text in driver.check(session):
        report("note", {"text": text})
    write_settings(session.path, driver.name, driver.settings)
    rounds = Rounds(
        session,
        Attempts(session.path / "logs", digest(driver.name, driver.settings)),
        size=batch,
        on_error=policy,
        recover=driver.recover,
        report=report,
    )
    driver.run(rounds)


def _silent(event: str, content: Mapping[str, Any]) -> None:
    """Nobody listens."""
