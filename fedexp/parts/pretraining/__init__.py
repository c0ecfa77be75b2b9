"""Pretraining: what the server makes of the first model."""
