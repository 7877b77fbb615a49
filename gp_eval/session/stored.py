"""The copy of the references that a session keeps."""

from __future__ import annotations

from pathlib import Path

from gp_eval.data import References
from gp_eval.data.validation import some
from gp_eval.errors import DataError, StateMismatchError
from gp_eval.session.config import BaseConfig

__all__ = ["check_same", "read_stored", "scores_only"]


def scores_only(references: References) -> References:
    """The references without class probabilities, which no session needs."""
    return References(
        references.scores,
        references.items,
        references.models,
        item_weights=references.item_weights if references.is_weighted else None,
        groups=references.groups,
        meta=references.meta,
        missing="keep",
    )


def read_stored(path: Path, config: BaseConfig) -> References:
    """The references in the folder, checked against the settings.

    Raises:
        StateMismatchError: If they are missing, damaged or were changed.
    """
    try:
        stored = References.read(path, missing="keep")
    except DataError as error:
        raise StateMismatchError(f"references of the session: {error}") from error
    if stored.fingerprint != config.references or list(stored.items) != config.items:
        raise StateMismatchError(
            f"{str(path)!r} was changed: its fingerprint is not the one in session.json"
        )
    return stored


def check_same(stored: References, given: References) -> None:
    """Raise ``StateMismatchError`` with the difference if there is one."""
    if stored.fingerprint == given.fingerprint:
        return
    for name in ("items", "models"):
        ours, theirs = getattr(stored, name), getattr(given, name)
        missing = [i for i in ours if i not in set(theirs)]
        extra = [i for i in theirs if i not in set(ours)]
        if missing or extra:
            parts = [f"lack {some(missing)}"] if missing else []
            parts += [f"have {some(extra)}"] if extra else []
            raise StateMismatchError(
                f"references: other {name} than the session's: they "
                + " and ".join(parts)
            )
    raise StateMismatchError(
        "references: the ids are those of the session, but order, scores or weights "
        "are not"
    )
