"""`fedexp plan`: the cost of a run before it starts. A few rounds are tried, all rounds are counted."""
