"""Pre-aggregation: what the server makes of the rows before a rule combines them."""
