"""Privacy: how clients are protected, and the ledger of the guarantees."""
