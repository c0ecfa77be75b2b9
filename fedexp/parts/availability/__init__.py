"""Availability: when clients are there."""
