"""Reference scores and their buckets."""

from gp_eval.data.buckets import Buckets
from gp_eval.data.references import References

__all__ = ["Buckets", "References"]
