"""`fedexp verify`: checks a run folder. Computes rounds again and compares them with the files."""
