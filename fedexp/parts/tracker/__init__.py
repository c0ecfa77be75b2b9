"""Trackers: where else the numbers of a run go. The folder stays the truth, and nothing here can hold up a run."""
