"""One policy iteration of all six algorithms in plain NumPy: the golden reference."""
