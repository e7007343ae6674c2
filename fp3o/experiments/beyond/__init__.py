"""Experiments that are not in the paper: one module each, with an `EXPERIMENT`."""
