"""Methods against one other: runs paired by seed, differences, tests, ranks. Reads run folders, nothing else."""
