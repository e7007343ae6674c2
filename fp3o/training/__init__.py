"""Training: rollouts, on the device or on the host, and the compiled program of an iteration."""
