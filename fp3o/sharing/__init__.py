"""Parameter sharing: maps from agent to group, by name (`schemes`) or estimated (`auto`)."""
