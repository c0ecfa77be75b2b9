"""Pacings: when clients begin, and when the server takes a step."""
