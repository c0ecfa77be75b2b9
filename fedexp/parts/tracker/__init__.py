"""Trackers: send the numbers of a run elsewhere. The run's folder stays complete, and no tracker can stop a run."""
