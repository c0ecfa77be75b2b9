"""Clusterings: which clients share a model."""
