"""Texts and configs without the passwords of the addresses in them: what is written to files and logs."""

import re
from typing import Any

_USER = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s]*@", re.IGNORECASE)  # up to the last @: a password may hold one


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
