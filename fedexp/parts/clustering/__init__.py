"""Clusterings: which clients learn together, each group of them a model of its own."""
