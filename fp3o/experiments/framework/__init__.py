"""Framework of experiments: grids of runs, execution, timing, summaries, pages."""
