"""`fedexp compare`: methods against one other. Runs paired by seed, differences, tests, ranks."""
