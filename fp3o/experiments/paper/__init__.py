"""Experiments of the paper: one module per table or figure, each with an `EXPERIMENT`."""
