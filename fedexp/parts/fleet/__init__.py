"""Fleets: the machines and links of the clients, and the clock."""
