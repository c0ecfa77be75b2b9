"""Whether a run folder tells the truth: rounds computed again, and compared with what was written."""
