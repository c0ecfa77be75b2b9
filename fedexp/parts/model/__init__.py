"""Networks: one file for each architecture."""
