"""Run directories as data: settings, metrics, final evaluations, timing."""
