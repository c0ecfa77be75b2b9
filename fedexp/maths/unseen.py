"""How many clients never train."""


def unseen_count(fraction: float, clients: int) -> int:
    """How many of so many clients a fraction of them is, rounded down: at least one if it is above 0."""
    return max(1, int(fraction * clients + 1e-9)) if fraction else 0
