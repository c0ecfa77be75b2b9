"""Privacy: what protects the clients, and the ledger of what was guaranteed to whom."""
