"""Tiny tasks with known answers: probes of the learner, and matrix games."""
