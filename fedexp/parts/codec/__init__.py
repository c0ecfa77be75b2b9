"""What clients do to their rows before these travel up."""
