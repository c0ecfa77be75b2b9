"""Stops: when a run ends before its last round."""
