"""Sessions on disk: ask, tell, resume."""

from gp_eval.session.session import Session

__all__ = ["Session"]
