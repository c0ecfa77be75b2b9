"""Selectors: who takes part in a round."""
