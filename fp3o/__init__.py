"""Cooperative multi-agent PPO that works with any parameter sharing."""
