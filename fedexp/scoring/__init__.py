"""Loss and metrics of one model, or of many at once."""
