"""Networks: one file an architecture."""
