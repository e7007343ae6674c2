"""The command line: `fp3o COMMAND ...`."""
