"""`fedexp verify`: whether a run folder is true. Computes rounds again and compares them with the files."""
