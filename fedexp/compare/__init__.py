"""`fedexp compare`: differences between methods. Runs are paired by seed; then differences, tests, ranks."""
