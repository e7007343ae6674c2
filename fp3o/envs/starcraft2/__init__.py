"""StarCraft II itself, through SMAC, in worker processes."""
