"""Shapley values of the participants of a round: pure functions of a table of utilities."""
