"""Attacks: what malicious clients do to their data and to what they send."""
