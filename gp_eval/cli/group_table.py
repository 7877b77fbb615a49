"""Scores of groups in ``gp-eval status --group-by``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gp_eval.cli.output import note, print_table
from gp_eval.data import Groups
from gp_eval.loop import Result
from gp_eval.report.group_content import GroupSection, group_rows
from gp_eval.report.groups import group_sections
from gp_eval.report.text import plain
from gp_eval.session import MultiTargetSession, Session

__all__ = ["print_groups", "sections_by"]


def sections_by(
    source: str | None,
    session: Session | MultiTargetSession,
    results: Sequence[Result],
) -> dict[str, GroupSection]:
    """Scores of groups by target; none without a source.

    Args:
        source: What ``--group-by`` names, see :meth:`~gp_eval.data.Groups.read`.
        session: The session, which is only looked at.
        results: Its estimates.
    """
    if source is None:
        return {}
    groups = Groups.read(source, session.references)
    sections = group_sections(session, results, groups)
    return {r.target: section for r, section in zip(results, sections, strict=True)}


def print_groups(by_target: Mapping[str, GroupSection]) -> None:
    """A table of the groups of each target, and what they are."""
    several = len(by_target) > 1
    for target, section in by_target.items():
        print()
        heading = f"{plain(target)}: group" if several else "group"
        print_table(
            [heading, "score", "95 % interval", "width", "n", "references"],
            [
                [
                    plain(row.label),
                    f"{row.score.estimate:.4f}",
                    f"[{row.score.low:.4f}, {row.score.high:.4f}]",
                    f"{row.score.high - row.score.low:.4f}",
                    row.counts,
                    f"{row.score.references_mean:.4f}",
                ]
                for row in group_rows(section)
            ],
        )
    for text in dict.fromkeys(s.groups_note for s in by_target.values()):
        note(text)
