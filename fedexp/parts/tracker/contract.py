"""The contract of trackers: they send a run's parameters, metrics and files elsewhere while it runs.

`metrics.csv` is what is sent, by a process of its own (`sender`), which may fail, hang or die without harm.
`tracker.json` remembers what has arrived; whatever is missing at the end goes when the run is resumed.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from fedexp.config.trust import remember_address
from fedexp.core.errors import ConfigError
from fedexp.core.nested import flatten_keys
from fedexp.core.part import Part, Positive, describe_choice
from fedexp.parts.tracker.courier import ProcessClient, TrackerClient
from fedexp.parts.tracker.lines import Line, parameters, text
from fedexp.parts.tracker.memo import SyncState

LONGEST_TAG = 5000


@dataclass(frozen=True)
class Order:
    """What the sender must know of a run beside its folder: parameters by dotted name, and tags."""

    folder: Path
    parameters: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


class Receiver:
    """An open connection to a tracker. After an error the sender opens a new one and sends again."""

    def begin(self) -> SyncState:
        """Finds or creates the run; returns which run it is, and the last round that has certainly arrived."""
        raise NotImplementedError

    def send(self, lines: Sequence[Line]) -> None:
        """Sends some rounds; on return they have arrived."""
        raise NotImplementedError

    def finish(self, status: str, summary: Line | None, files: Sequence[Path]) -> None:
        """Sends the end of a run; `summary` and `files` are given only if they have not arrived before."""
        raise NotImplementedError


class Tracker(Part):
    """The base of trackers; it sends nothing."""

    def refuse(self) -> None:
        """Raises ConfigError where the tracker cannot work: its package is not installed, or this is Windows."""

    def follow(self, folder: Path, config: dict[str, Any], facts: Callable[[], dict[str, Any]]) -> TrackerClient:
        """Begins to send what the run writes to its folder; `facts` is called only if tags are sent."""
        return TrackerClient()

    @property
    def named_addresses(self) -> tuple[str, ...]:
        """The addresses in its keys; a tracker of the user's own is its own address, with all its keys."""
        return ()

    def addresses(self, folder: Path) -> tuple[str, ...]:
        """The addresses to which it would send a folder, if somebody else may have prepared them."""
        return self.named_addresses

    def open(self, order: Order, state: SyncState) -> Receiver:
        """Opens a connection for a run in this state of sending; called in the sender's process."""
        raise NotImplementedError


class SendingTracker(Tracker):
    """The base of trackers that send something."""

    package = ""

    patience_s: Annotated[float, Positive] = 10.0

    def refuse(self) -> None:
        choice, is_builtin = describe_choice("tracker", self), type(self).__module__.startswith("fedexp.")
        if not self.package:
            raise ConfigError(f"{choice} must name in its class the package that it needs, as package; got nothing")
        if not is_installed(self.package):
            wanted = f"'fedexp[{self.package}]'" if is_builtin else self.package
            raise ConfigError(f"{choice} needs {self.package}; pip install {wanted}")
        if not hasattr(os, "setpgid"):
            raise ConfigError(f"{choice} needs process groups, which Linux and macOS have; use tracker=none here")

    @property
    def named_addresses(self) -> tuple[str, ...]:
        return (f"{type(self).__module__}.{self!r}",)

    def follow(self, folder: Path, config: dict[str, Any], facts: Callable[[], dict[str, Any]]) -> TrackerClient:
        for address in self.named_addresses:
            remember_address(address)
        target = f"{type(self).__module__}.{type(self).__qualname__}"
        order = {
            "tracker": {"_target_": target, **asdict(self)},
            "folder": str(folder.absolute()),
            "parameters": parameters(config),
            "tags": {name: text(value, LONGEST_TAG) for name, value in flatten_keys(facts()).items()},
        }
        return ProcessClient(self.package, folder, order, self.patience_s)


def is_installed(package: str) -> bool:
    """Whether a package, or a module of one, can be imported."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # what it would be in is not there, or is none
        return False
