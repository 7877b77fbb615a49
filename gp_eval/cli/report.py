"""``gp-eval report``: a session as a page, a table or a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gp_eval.cli.output import note, training_progress
from gp_eval.data import Groups
from gp_eval.report.build import build_report
from gp_eval.report.write import check_report, write_report
from gp_eval.session import open_session

__all__ = ["report_run"]


def report_run(run: Path, outputs: Sequence[Path], *, group_by: str | None) -> None:
    """Write the report of a session, which is only looked at, in each format.

    Args:
        run: Folder of the session.
        outputs: Files to write.
        group_by: Source of :meth:`~gp_eval.data.Groups.read`.
    """
    for output in outputs:
        check_report(output)
    with (
        training_progress() as progress,
        open_session(run, read_only=True, progress=progress) as session,
    ):
        groups = None
        if group_by is not None:
            groups = Groups.read(group_by, session.references)
        report = build_report(session, groups=groups)
    for output in outputs:
        note(f"Report: {write_report(report, output)}")
