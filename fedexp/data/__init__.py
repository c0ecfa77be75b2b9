"""Dataset archives: where they are, and how they are downloaded, verified and parsed. No options here."""
