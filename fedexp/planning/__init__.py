"""What a run will cost, told before it is run: a few rounds tried, all rounds counted."""
