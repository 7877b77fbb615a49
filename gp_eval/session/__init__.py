"""Sessions on disk: ask, tell, resume."""

from gp_eval.session.multi_target import MultiTargetSession
from gp_eval.session.opening import open_session
from gp_eval.session.session import Session

__all__ = ["MultiTargetSession", "Session", "open_session"]
