"""Composes, resolves and checks configs: everything that touches Hydra's composer."""
