"""Runs the missing points of a sweep: creates their folders, gives them to the launcher, reports how each ended."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from hydra.core.utils import configure_log
from omegaconf import DictConfig, OmegaConf

from fedexp.config import noted
from fedexp.config.compose import Composer, read_config, settings
from fedexp.config.launchers import BASIC
from fedexp.config.trust import NOBODY, Trust
from fedexp.core.durations import spoken
from fedexp.core.errors import ConfigError
from fedexp.core.exits import ASKED_WRONGLY
from fedexp.core.files import shown, typed
from fedexp.core.part import build
from fedexp.run import addresses, folders
from fedexp.run.retrack import put
from fedexp.sweep.launchers.basic import Basic
from fedexp.sweep.launchers.contract import Launcher, PointEnd
from fedexp.sweep.points import Point, composed
from fedexp.sweep.worker import TRACEBACK, live

NUMBER = "${hydra.job.num}"
SHOWN = 5  # failed points that the last line names
NOTHING = "fedexp.parts.tracker.contract.Tracker"

log = logging.getLogger(__name__)


@dataclass
class Sweep:
    """The points of one sweep, its folder, and how far it is."""

    composer: Composer
    config: DictConfig
    points: list[Point]
    launcher: Launcher
    tracker: dict[str, Any] | None = None
    trust: Trust = NOBODY
    places: dict[Path, Point] = field(default_factory=dict)
    ahead: frozenset[int] = frozenset()  # points that were finished before
    over: int = 0  # points with nothing left to do
    flying: int = 0  # points that are running
    together: int = 1  # the most that ran at once
    lasted: list[float] = field(default_factory=list)  # seconds of the points that ended well

    def execute(self) -> list[PointEnd]:
        """Executes what is missing or unfinished and returns the points that failed."""
        failed = []
        share = None if self.launcher.aloud else 1
        live_one = partial(live, share=share, aloud=self.launcher.aloud, trust=self.trust)
        self.ahead = self.over_ahead()
        self.over = len(self.ahead)
        with closing(self.launcher.launch(self._todo(failed), live_one)) as outcomes:
            for outcome in outcomes:
                self.over, self.flying = self.over + 1, self.flying - 1
                self.lasted += [] if outcome.code else [outcome.seconds]
                self._tell(outcome)
                if outcome.code:
                    failed.append(outcome)
        return failed

    def demand_addresses(self) -> None:
        """Refuses another's sweep before any point begins, if its trackers would send to unknown addresses.

        Known addresses are passed on to the points' processes. Points whose folders do not have their numbers are
        checked when they begin.
        """
        sweep, known = Path(self.config.hydra.sweep.dir), set(self.trust.addresses)
        for node in self._trackers(sweep):
            addresses.demand({"tracker": node}, sweep / "0", self.trust)
            known.update(build(node, "tracker").addresses(sweep / "0"))
        self.trust = replace(self.trust, addresses=tuple(sorted(known)))

    def _trackers(self, sweep: Path) -> list[dict[str, Any]]:
        """The distinct trackers of all points: the one that is named now, else those in the folders or the config."""
        if self.tracker is not None:
            return [self.tracker]
        begun = [sweep / str(one.number) for one in self.points] if self._numbered() else []
        begun = [place for place in begun if noted.is_whole(place)]
        found = [read_config(place, self.trust).get("tracker") for place in begun if _sends(noted.written(place))]
        if len(begun) < len(self.points):
            found.append(settings(self.config)[0].get("tracker"))
        return [node for number, node in enumerate(found) if node and node not in found[:number]]

    def _todo(self, failed: list[PointEnd]) -> Iterator[Path]:
        """Yields the folders of unfinished points, each created when the launcher takes it."""
        for point in self.points:
            try:
                folder = self._place(point)
                self._refuse_shared(folder, point)
                put(folder, self.tracker)
                finished = folders.is_finished(folder)
                if finished and self._tracked():
                    send(folder, self.trust)
            except ConfigError as error:
                log.error("failed: %s%s", point, error)
                failed.append(PointEnd(Path(self.config.hydra.sweep.dir), ASKED_WRONGLY, str(error)))
                self.over += point.number not in self.ahead
                continue
            self.places[folder] = point
            if finished:
                self.over += point.number not in self.ahead
                continue
            self.flying += 1
            self.together = max(self.together, self.flying)
            if self.launcher.aloud:
                log.info("%d of %d: %s", point.number + 1, len(self.points), point.words)
            yield folder

    def _place(self, point: Point) -> Path:
        """The folder of a point, with the point's config in it.

        A point whose folder has its number need not be composed to find it. With other names it must: folder 1 may be
        seed 1.
        """
        sweep = Path(self.config.hydra.sweep.dir).absolute()
        known = sweep / str(point.number)
        if known.exists() and not known.is_dir():
            raise ConfigError(f"{shown(known)} must be the folder of the point, but is a file; remove it")
        if self._numbered() and noted.is_whole(known):
            return known
        own = composed(self.composer, self.config, point)
        folder = (sweep / str(own.hydra.sweep.subdir)).absolute()
        if not folder.resolve().is_relative_to(sweep.resolve()):
            raise ConfigError(f"hydra.sweep.subdir must lead below {shown(sweep)}, got {own.hydra.sweep.subdir}")
        noted.note(folder, own)
        return folder

    def _refuse_shared(self, folder: Path, point: Point) -> None:
        if folder in self.places:
            number = self.places[folder].number
            raise ConfigError(
                f"its folder is that of point {number}, {shown(folder)}; hydra.sweep.subdir must differ for every point"
            )

    def _numbered(self) -> bool:
        asked = cast(dict[str, Any], OmegaConf.to_container(self.config.hydra.sweep, resolve=False))
        return asked["subdir"] == NUMBER

    def _tracked(self) -> bool:
        return _sends({"tracker": self.tracker} if self.tracker else self.config)

    def _tell(self, outcome: PointEnd) -> None:
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        point = self.places[outcome.folder]
        if outcome.code:
            log.error("failed: %s%s", point, outcome.message)
        words = "" if self.launcher.aloud else f": {point.words}"
        took = " failed" if outcome.code else f", {spoken(outcome.seconds)}"
        log.info("%d of %d%s%s%s", point.number + 1, len(self.points), words, took, self._left())

    def _left(self) -> str:
        """How many points remain, and how long they will take at the mean duration so far."""
        left = len(self.points) - self.over
        if not self.lasted or not left:
            return f"; {left} left" if left else ""
        each = sum(self.lasted) / len(self.lasted)
        return f"; {left} left, about {spoken(each * left / self.together)}"

    def over_ahead(self) -> frozenset[int]:
        """The numbers of finished points, if folders are named by number; else points have to be composed first."""
        sweep = Path(self.config.hydra.sweep.dir)
        points = self.points if self._numbered() else ()
        return frozenset(one.number for one in points if folders.is_finished(sweep / str(one.number)))


def _sends(config: Mapping[str, Any] | DictConfig) -> bool:
    """Whether a config has a tracker that sends anything."""
    return (config.get("tracker") or {}).get("_target_", NOTHING) != NOTHING


def send(folder: Path, trust: Trust) -> None:
    """Sends what the tracker lacks of a finished point."""
    from fedexp.run.run import send

    config = read_config(folder, trust)
    addresses.demand(config, folder, trust)
    send(config, folder)


def launcher_of(config: DictConfig) -> Launcher | None:
    """Builds the launcher that was chosen; None if it is somebody else's plugin.

    Raises:
        ConfigError: it cannot work here.
    """
    node = OmegaConf.to_container(config.hydra.launcher, resolve=True)
    assert isinstance(node, Mapping)
    if node.get("_target_") == BASIC:
        return Basic()
    if not str(node.get("_target_")).startswith("fedexp."):
        return None
    launcher = build(node, "hydra.launcher")
    launcher.refuse()
    return launcher


def verdict(failed: list[PointEnd], points: int, folder: Path) -> str:
    """The error message of a sweep with failed points."""
    named = ", ".join(shown(one.folder) for one in failed[:SHOWN]) + (", ..." if len(failed) > SHOWN else "")
    told = f"{len(failed)} of {points} points failed: {named}; the reasons are above and in their {TRACEBACK}"
    over = sum(folders.is_finished(one.folder) for one in failed)
    if over < len(failed):
        told += f"; to try {'them' if not over else 'those that did not end'} again: fedexp resume {typed(folder)}"
    return told
