"""Training runs: configuration, the training loop, run directories, evaluation and videos."""
