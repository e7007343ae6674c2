"""Statistics over seeds and tasks: intervals, robust means, aggregates."""
