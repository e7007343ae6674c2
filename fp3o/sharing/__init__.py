"""Parameter sharing: maps from agent to group, by name (`schemes`) or found by data (`auto`)."""
