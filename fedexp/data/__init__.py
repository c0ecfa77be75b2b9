"""Datasets: where the examples come from, how they are checked and parsed."""
