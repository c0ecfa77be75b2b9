"""How many clients never train."""


def unseen_count(fraction: float, clients: int) -> int:
    """The number of clients that never train: this fraction of them, rounded down, and at least one if above 0."""
    return max(1, int(fraction * clients + 1e-9)) if fraction else 0
