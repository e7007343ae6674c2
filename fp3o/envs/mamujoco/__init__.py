"""Multi-Agent MuJoCo: teams that share the joints of one body, on real MuJoCo."""
