"""Datasets: where the examples come from."""
