"""Pre-aggregation: what the server does to the rows before a rule combines them."""
