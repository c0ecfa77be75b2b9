"""What everything else builds on: values, checked parts, errors, files, exits, logs, random streams."""
