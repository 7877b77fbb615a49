"""What silently ruins a prior: faults of a reference table, found and named."""

from gp_eval.diagnosis.check import check_references
from gp_eval.diagnosis.findings import Diagnosis, Finding, Standing

__all__ = ["Diagnosis", "Finding", "Standing", "check_references"]
