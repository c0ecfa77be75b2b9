"""`fedexp verify`: whether a run folder tells the truth. Rounds computed again, and compared with what was written."""
