"""One run in memory: its parts, its data, its rounds and their measurements. Writes no file."""
