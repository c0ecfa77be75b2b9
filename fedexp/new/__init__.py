"""`fedexp new`: an own part that runs as it is written, to begin with. For every group."""
