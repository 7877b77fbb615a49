"""Writes a report in the format that the name of the file says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from gp_eval._files import atomic_write
from gp_eval.errors import DataError
from gp_eval.report.chart import as_curve
from gp_eval.report.content import Report
from gp_eval.report.curves import check_picture, plot_curves
from gp_eval.report.html import html_report
from gp_eval.report.markdown import markdown_report

__all__ = ["check_report", "write_report"]


def check_report(path: Path) -> None:
    """Find out before the work whether the report can be written.

    Raises:
        ValueError: For a suffix other than those of :func:`write_report`.
        FileNotFoundError: For a folder that does not exist.
        MissingDependencyError: For a picture without matplotlib.
    """
    if path.suffix not in _WRITERS:
        raise ValueError(f"output: expected one of {list(_WRITERS)}, got {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"output: no such folder: {str(path.parent)!r}")
    if path.suffix == ".png":
        check_picture(path)


def write_report(report: Report, path: str | Path) -> Path:
    """Write a report in one atomic step.

    ``.html`` is one self-contained page, ``.json`` the fields of
    :class:`~gp_eval.report.content.Report`, ``.md`` GitHub-flavoured Markdown, ``.png``
    a picture of estimate and interval against ``n``.

    Args:
        report: What :func:`~gp_eval.report.build.build_report` computed.
        path: Where to write it.

    Returns:
        The path, absolute.

    Raises:
        ValueError: For another suffix.
        FileNotFoundError: For a folder that does not exist.
        DataError: For a picture of a session without any score.
    """
    path = Path(path)
    check_report(path)
    atomic_write(path, _WRITERS[path.suffix](report))
    return path.absolute()


def _json(report: Report) -> bytes:
    return report.model_dump_json(indent=2).encode() + b"\n"


def _html(report: Report) -> bytes:
    return html_report(report).encode()


def _markdown(report: Report) -> bytes:
    return markdown_report(report).encode()


def _png(report: Report) -> bytes:
    curves = [as_curve(target) for target in report.targets if target.n]
    if not curves:
        raise DataError("output: no item was evaluated yet: there is nothing to draw")
    with tempfile.TemporaryDirectory() as folder:
        return plot_curves(curves, Path(folder) / "curves.png").read_bytes()


_WRITERS: dict[str, Callable[[Report], bytes]] = {
    ".html": _html,
    ".json": _json,
    ".md": _markdown,
    ".png": _png,
}
