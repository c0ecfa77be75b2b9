"""Federations: who holds which training example."""
