"""Batched simulators, one module a family of models."""
