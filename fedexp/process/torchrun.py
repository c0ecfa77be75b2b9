"""Whether torchrun started this process, and as which of how many."""

import os

from fedexp.core.errors import ConfigError

ADDRESS = ("MASTER_ADDR", "MASTER_PORT")  # where the processes meet


def processes() -> int:
    """How many processes torchrun started; 1 without it."""
    return _number("WORLD_SIZE", 1) if "RANK" in os.environ else 1


def under_torchrun() -> bool:
    """Whether this process is one of several."""
    return processes() > 1


def rank() -> int:
    """This process's number under torchrun; 0 owns the run folder."""
    return _number("RANK", 0) if under_torchrun() else 0


def refuse_environment() -> None:
    """Raises ConfigError where the environment does not say which of how many processes this is."""
    size, number = os.environ.get("WORLD_SIZE"), os.environ.get("RANK")
    if size is None or number is None:
        return
    if not (size.isdecimal() and number.isdecimal() and int(number) < int(size)):
        raise ConfigError(
            f"RANK and WORLD_SIZE must say which of how many processes this is, got RANK={number} WORLD_SIZE={size}; "
            "start them with torchrun, or unset RANK"
        )


def meeting_point() -> str:
    """Where the processes of torchrun meet, `HOST:PORT`.

    Raises:
        ConfigError: the environment does not say so.
    """
    if missing := [name for name in ADDRESS if not os.environ.get(name)]:
        raise ConfigError(f"{missing[0]} must be set for {processes()} processes; start them with torchrun")
    return ":".join(os.environ[name] for name in ADDRESS)


def _number(name: str, usual: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else usual
