"""Pretraining: how the server trains the first model."""
