"""Networks of a whole team, built from layers whose parameters are shared in groups."""
