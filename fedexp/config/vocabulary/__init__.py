"""What papers and other tools call options and keys, and what to write for their words here."""
