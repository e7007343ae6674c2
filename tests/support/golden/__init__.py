"""One policy iteration of all six algorithms in plain NumPy: the golden reference.

Loops over stages, epochs, minibatches and agents; NumPy in float64; no JAX, nothing shared with the
library. Random numbers (orders, shuffles, split weights) are given as `Draws`.

Samples (rows) are ordered by environment, then time: row e·T + t. Data of agents are lists over
agents, data of parameter groups are dicts with the key (layer, group).
"""
