"""Multi-agent particle environments: physics, scenarios, scripted policies, rendering, tasks."""
