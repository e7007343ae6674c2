"""Environments: the contract (`base`) and tiny tasks with known answers (`probe`)."""
