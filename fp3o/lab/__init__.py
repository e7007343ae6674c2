"""The laboratory: how experiments are laid out, carried out and shown. It knows none by name."""
