"""From words to a checked, plain config: all that touches Hydra's composer."""
