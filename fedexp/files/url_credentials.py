"""Removes passwords from addresses before files, logs and trackers see them.

The whole address stays in the process that was given it and in those that it starts, in the variable where MLflow's own
tools look for one. To resume a run, set that variable or type the address again.
"""

import os
import re
from typing import Any

ADDRESS_VARIABLE = "MLFLOW_TRACKING_URI"
# Up to the last @, as a password may hold one. In the overrides of a sweep's points a backslash precedes the colon.
_USER = re.compile(r"(\b[a-z][a-z0-9+.-]*\\?://)[^/\s]*@", re.IGNORECASE)


def without_password(text: str) -> str:
    """A text whose addresses have neither user name nor password."""
    return _USER.sub(r"\1", text)


def has_ambiguous_at(address: str) -> bool:
    """Whether an address with a host has an @ behind it: perhaps it ends a password with a /, which nobody can tell."""
    return re.match(r"[a-z][a-z0-9+.-]*://[^/]+/.*@", address, re.IGNORECASE) is not None


def without_passwords(node: Any) -> Any:
    """A copy of nested mappings and lists in which no address has a user name or password."""
    if isinstance(node, str):
        return without_password(node)
    if isinstance(node, dict):
        return {name: without_passwords(child) for name, child in node.items()}
    return [without_passwords(child) for child in node] if isinstance(node, list) else node


def keep_in_environment(address: object) -> None:
    """Stores an address with a password in the environment variable; does nothing with other addresses."""
    if isinstance(address, str) and without_password(address) != address:
        os.environ[ADDRESS_VARIABLE] = address


def is_in_environment(address: str) -> bool:
    """Whether the environment holds this address, with or without its password."""
    kept_address = os.environ.get(ADDRESS_VARIABLE)
    return bool(kept_address) and without_password(kept_address) == without_password(address)


def with_password(address: str) -> str:
    """The address with its password, if the environment holds it."""
    kept_address = os.environ.get(ADDRESS_VARIABLE, "")
    return kept_address if without_password(kept_address) == address else address
