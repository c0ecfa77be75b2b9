"""Aggregators: how uploads become one model."""
