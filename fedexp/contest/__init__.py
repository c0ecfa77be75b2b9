"""`fedexp contest`: every method tuned on the same budget, then compared on seeds that no search has seen."""
