"""One run in memory: what was asked, the world, the round, the rounds, what is measured of them. Writes no file."""
