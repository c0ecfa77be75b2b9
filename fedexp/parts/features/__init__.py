"""Features: what models see instead of the examples themselves."""
