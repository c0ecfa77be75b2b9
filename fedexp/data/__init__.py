"""Archives of examples: where they are, how they are fetched, checked and read. No options here."""
