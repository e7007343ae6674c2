"""Rewards of the bodies, when an episode fails, and how it starts.

The formulas are written once for NumPy and JAX (`xp` is the module), over the last axes of the
arrays; any batch axes may precede them.
"""
