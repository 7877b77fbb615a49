"""Reference scores and their buckets."""

from gp_eval.data.buckets import Buckets
from gp_eval.data.groups import Groups
from gp_eval.data.metadata import weights_from_metadata
from gp_eval.data.references import References

__all__ = ["Buckets", "Groups", "References", "weights_from_metadata"]
