"""Benchmarks that come with the package."""

from gp_eval.datasets.digits import load_digits_benchmark

__all__ = ["load_digits_benchmark"]
