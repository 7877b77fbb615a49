"""What to do where logs leave a choice; nothing is decided in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from gp_eval.errors import DataError

__all__ = ["Policies"]

Runs = Literal["error", "latest", "mean"]
OnError = Literal["error", "skip", "zero"]
Gaps = Literal["error", "keep", "drop-items", "drop-models"]
Hashes = Literal["check", "ignore"]


@dataclass(frozen=True)
class Policies:
    """Policies of a build.

    Args:
        runs: For a model run more than once: ``"error"`` unless the scores agree, the
            ``"latest"`` score of each item, or the ``"mean"`` over runs.
        on_error: For items that failed, were not scored, or have an infinite score:
            ``"error"``, ``"skip"`` (a missing cell) or ``"zero"`` (the worst score).
        missing: For missing cells: ``"error"``, ``"keep"``, ``"drop-items"`` or
            ``"drop-models"``.
        min_coverage: Models with a smaller share of the items are left out first.
        lower_is_better: True turns scores over (worst becomes best), False keeps them;
            None does neither and refuses metrics that the logs call lower-is-better.
        scale: ``(lo, hi)`` maps that range to [0, 1]; ``"keep"`` keeps any scores; None
            expects scores in [0, 1].
        hashes: Whether items of equal id must have equal digests where logged.
    """

    runs: Runs = "error"
    on_error: OnError = "error"
    missing: Gaps = "error"
    min_coverage: float = 0.0
    lower_is_better: bool | None = None
    scale: tuple[float, float] | Literal["keep"] | None = None
    hashes: Hashes = "check"

    def __post_init__(self) -> None:
        choices: dict[str, Any] = {
            "runs": Runs,
            "on_error": OnError,
            "missing": Gaps,
            "hashes": Hashes,
        }
        for name, known in choices.items():
            if getattr(self, name) not in get_args(known):
                raise DataError(
                    f"{name}: expected one of {list(get_args(known))}, got "
                    f"{getattr(self, name)!r}"
                )
        if not 0.0 <= self.min_coverage <= 1.0:
            raise DataError(f"min_coverage: 0 to 1, got {self.min_coverage!r}")
        if isinstance(self.scale, tuple) and not self.scale[0] < self.scale[1]:
            raise DataError(f"scale: expected lo < hi, got {self.scale!r}")
