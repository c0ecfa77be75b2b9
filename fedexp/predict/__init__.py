"""Asks an exported model about new examples."""
