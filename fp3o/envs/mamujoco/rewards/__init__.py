"""Rewards, failure conditions and initial states of the bodies.

The formulas are written once for NumPy and JAX (`xp` is the module), over the last axes of the
arrays; any batch axes may precede them.
"""
