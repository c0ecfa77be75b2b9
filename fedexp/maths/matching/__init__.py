"""Matching of hidden units over clients: pure functions in float64."""
