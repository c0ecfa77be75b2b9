"""Engines: how the rows of a round are trained."""
