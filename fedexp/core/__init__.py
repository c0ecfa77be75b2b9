"""The ground: values, checked parts, errors, files, exits, logs, random streams. Imports nothing else of fedexp."""
