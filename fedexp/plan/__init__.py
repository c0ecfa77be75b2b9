"""`fedexp plan`: what a run will cost, told before it is run. A few rounds tried, all rounds counted."""
