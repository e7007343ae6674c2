"""SMAC-style battles in JAX: the published maps and rules, on an own simulator."""
