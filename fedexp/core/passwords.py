"""Addresses without their passwords: what files, logs and trackers see of them.

A whole address stays with the process that was given it and with those it starts, in the variable where MLflow's own
tools look for one. Whoever resumes a run sets that variable, or types the address again.
"""

import os
import re
from typing import Any

HELD = "MLFLOW_TRACKING_URI"
# Up to the last @, which a password may hold; the words of a sweep's points have a backslash before each colon.
_USER = re.compile(r"(\b[a-z][a-z0-9+.-]*\\?://)[^/\s]*@", re.IGNORECASE)


def without_password(text: str) -> str:
    """A text whose addresses do not say who asks."""
    return _USER.sub(r"\1", text)


def without_passwords(node: Any) -> Any:
    """A copy of nested mappings and lists without them."""
    if isinstance(node, str):
        return without_password(node)
    if isinstance(node, dict):
        return {name: without_passwords(child) for name, child in node.items()}
    return [without_passwords(child) for child in node] if isinstance(node, list) else node


def hold(address: object) -> None:
    """Keeps an address that has a password."""
    if isinstance(address, str) and without_password(address) != address:
        os.environ[HELD] = address


def is_held(address: str) -> bool:
    """Whether the environment names it, with a password or without."""
    held = os.environ.get(HELD)
    return bool(held) and without_password(held) == without_password(address)


def whole(address: str) -> str:
    """The address with its password, where that is kept."""
    held = os.environ.get(HELD, "")
    return held if without_password(held) == address else address
