"""`fedexp compare`: differences between methods, with tests and ranks. Runs are paired by seed."""
