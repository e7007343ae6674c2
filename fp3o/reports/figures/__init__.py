"""Figures drawn with matplotlib: results, learning curves, diagnostics."""
