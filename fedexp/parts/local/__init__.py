"""Local rules: what a client does with its data."""
