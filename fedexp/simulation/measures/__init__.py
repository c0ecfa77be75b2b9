"""Measurements of evaluated rounds besides the test data, one a file."""
