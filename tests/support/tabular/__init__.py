"""Exact tabular cooperative games: everything is computed, nothing is sampled."""
