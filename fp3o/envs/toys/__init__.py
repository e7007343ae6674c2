"""Tiny tasks with known optima: probe tasks and matrix games."""
