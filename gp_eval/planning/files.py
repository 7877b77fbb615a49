"""Plans on disk: as JSON that a session starts from, and as a picture."""

from __future__ import annotations

import io
from pathlib import Path

from pydantic import ValidationError

from gp_eval._files import atomic_write
from gp_eval.data import References
from gp_eval.errors import GpEvalError, StateMismatchError
from gp_eval.planning.content import Plan
from gp_eval.report.curves import check_picture

__all__ = ["check_output", "check_plan", "read_plan", "write_plan"]

_PICTURES = (".png", ".svg", ".pdf")


def check_output(path: Path) -> None:
    """Find out before the work whether the file can be written.

    Raises:
        ValueError: For another suffix than ``.json``, ``.png``, ``.svg`` or ``.pdf``.
        FileNotFoundError: For a folder that does not exist.
        MissingDependencyError: For a picture without matplotlib.
    """
    if path.suffix not in (".json", *_PICTURES):
        raise ValueError(
            f"output: expected one of {['.json', *_PICTURES]}, got {str(path)!r}"
        )
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"output: no such folder: {str(path.parent)!r}")
    if path.suffix != ".json":
        check_picture(path)


def write_plan(plan: Plan, path: str | Path) -> Path:
    """Write a plan in one atomic step: ``.json``, or a picture.

    Returns:
        The path, absolute.
    """
    path = Path(path)
    check_output(path)
    if path.suffix == ".json":
        atomic_write(path, plan.model_dump_json(indent=2).encode() + b"\n")
        return path.absolute()
    from gp_eval.planning.picture import plan_figure

    buffer = io.BytesIO()
    plan_figure(plan).savefig(buffer, format=path.suffix[1:])
    atomic_write(path, buffer.getvalue())
    return path.absolute()


def read_plan(path: str | Path) -> Plan:
    """Read the JSON of a plan.

    Raises:
        GpEvalError: For a file that cannot be read or is no plan.
    """
    try:
        return Plan.model_validate_json(Path(path).read_bytes())
    except (OSError, ValidationError) as error:
        reason = error if isinstance(error, OSError) else "it is no plan"
        raise GpEvalError(
            f"plan: {str(path)!r}: {reason}; gp-eval plan REFS -o plan.json writes one"
        ) from error


def check_plan(plan: Plan, references: References, *, path: str | Path) -> None:
    """Check that a plan is about these references.

    Args:
        plan: What was read.
        references: What a session is to start with.
        path: Where the plan comes from, for the message.

    Raises:
        StateMismatchError: If it is about others.
    """
    if plan.fingerprint == references.fingerprint:
        return
    raise StateMismatchError(
        f"plan: {str(path)!r} was made for other references: it has {plan.n_items} "
        f"items and {plan.n_references} references (fingerprint "
        f"{plan.fingerprint[:12]}), these are {len(references.items)} and "
        f"{len(references.models)} ({references.fingerprint[:12]}). Make it anew with "
        "the same table, --exclude, --macro and --missing as the session"
    )
