"""MLflow: a server, or an SQLite file that needs none. A sweep is a parent run, its points are the children.

MLflow stores a value twice if it is logged twice at one step. So the last number of a round is `round`, and a new
connection asks for its history and sends only the rounds that are missing. Rounds replayed after a crash have the same
numbers (timings aside), so those that had arrived stay as they are. The parent ends with the point that ends last.
"""

import getpass
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedexp.config.trust import remember_address, was_used
from fedexp.core.files import replacing
from fedexp.core.passwords import whole, without_password
from fedexp.parts.tracker import memo
from fedexp.parts.tracker.contract import Order, Receiver, Sending
from fedexp.parts.tracker.lines import Line, permitted, text
from fedexp.parts.tracker.memo import Memo

TOKEN = "fedexp.token"
METRICS, PARAMETERS, LONGEST_PARAMETER = 1000, 100, 6000  # of one request; characters
SQLITE = "sqlite:///"


@dataclass(frozen=True, kw_only=True)
class MLflow(Sending):
    """A tracking server, or a file."""

    package = "mlflow"

    uri: str | None = None
    experiment: str = "fedexp"

    @property
    def named(self) -> tuple[str, ...]:
        return () if self.uri is None else (without_password(place(self.uri, Path())),)

    def addresses(self, folder: Path) -> tuple[str, ...]:
        """An existing database counts as well: it determines where the files of its runs go."""
        found = destination(self.uri, memo.load(folder, self.package), folder.absolute())
        there = self.uri is not None or Path(found.removeprefix(SQLITE)).exists()
        return (found,) if there else ()

    def open(self, order: Order, known: Memo) -> "MlflowRun":
        _calm(self.patience_s)
        return MlflowRun(self, order, known)


def _calm(patience_s: float) -> None:
    """Changes MLflow's defaults, which are to wait for minutes, draw bars and count users; the user's settings win."""
    wishes = {
        "MLFLOW_HTTP_REQUEST_TIMEOUT": str(max(1, round(patience_s / 2))),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        "GIT_PYTHON_REFRESH": "quiet",
    }
    for name, value in wishes.items():
        os.environ.setdefault(name, value)


def place(uri: str | None, folder: Path) -> str:
    """The full URI; without one, mlflow.db in the `outputs` above the run, else in its search's or parent folder."""
    if uri is None:
        outputs = [parent for parent in folder.parents if parent.name == "outputs"]
        searches = [parent for parent in folder.parents if (parent / "search.yaml").exists()]
        return f"{SQLITE}{[*outputs, *searches, folder.parent][0] / 'mlflow.db'}"
    if uri.startswith(SQLITE):
        return f"{SQLITE}{Path(uri.removeprefix(SQLITE)).absolute()}"
    return uri


def destination(uri: str | None, known: Memo, folder: Path) -> str:
    """Where a run is sent: to its URI, else where it was sent before, if this user ever sent anything there."""
    before = known.place if known.place and was_used(known.place) else None
    return without_password(place(uri or before, folder))


def beside(uri: str) -> str | None:
    """The folder of artifacts if the numbers are in an SQLite file; None for a server, which decides itself."""
    if not uri.startswith(SQLITE):
        return None
    return (Path(uri.removeprefix(SQLITE)).parent / "mlartifacts").as_uri()


def provide(database: Path, patience_s: float) -> None:
    """Creates the database if there is none; atomically, because MLflow refuses an unfinished one."""
    from mlflow.tracking import MlflowClient

    database.parent.mkdir(parents=True, exist_ok=True)
    with memo.alone(database.parent, patience_s):
        if not database.exists():
            with replacing(database) as part:
                MlflowClient(tracking_uri=f"{SQLITE}{part}").search_experiments(max_results=1)


def title(folder: Path) -> str:
    """A run's name: its folder below `outputs`, else the folder's own."""
    words = folder.parts
    return "/".join(words[len(words) - words[::-1].index("outputs") :]) if "outputs" in words else folder.name


class MlflowRun(Receiver):
    """A run of a tracking server."""

    def __init__(self, tracker: MLflow, order: Order, known: Memo) -> None:
        from mlflow.tracking import MlflowClient  # takes a second

        self.tracker, self.order = tracker, order
        self.uri = destination(tracker.uri, known, order.folder)
        remember_address(self.uri)
        if self.uri.startswith(SQLITE):
            provide(Path(self.uri.removeprefix(SQLITE)), tracker.patience_s)
        self.client = MlflowClient(tracking_uri=whole(self.uri))
        self.memo, self.parent = known, Memo()

    def begin(self) -> Memo:
        experiment, sweep = self._experiment(), self.order.folder.parent
        if (sweep / "multirun.yaml").exists():
            self.parent = self._parent(experiment, sweep)
        tags = {**self.order.tags, **({"mlflow.parentRunId": self.parent.run} if self.parent.run else {})}
        self.memo = self._found(experiment, self.memo, title(self.order.folder), tags)
        self.client.update_run(self.memo.run, status="RUNNING")
        self._tell_parameters()
        steps = [entry.step for entry in self.client.get_metric_history(self.memo.run, "round")]
        self.memo = replace(self.memo, round=max(steps, default=0))
        return self.memo

    def send(self, lines: Sequence[Line]) -> None:
        metrics = [metric for line in lines for metric in self._metrics(line)]
        for start in range(0, len(metrics), METRICS):
            self.client.log_batch(self.memo.run, metrics=metrics[start : start + METRICS])

    def finish(self, status: str, summary: Line | None, files: Sequence[Path]) -> None:
        if summary is not None:
            self.send([summary])
        for path in files:
            inner = path.parent.relative_to(self.order.folder).as_posix()
            self.client.log_artifact(self.memo.run, str(path), None if inner == "." else inner.lstrip("."))
        self.client.set_terminated(self.memo.run, status)
        if self.parent.run:
            self.client.set_terminated(self.parent.run, "FINISHED")

    def _metrics(self, line: Line) -> list[Any]:
        from mlflow.entities import Metric

        seconds = line.cells.get("host_s", line.cells.get("summary/host_s", 0.0))
        moment = self.memo.began_ms + round(1000 * seconds)  # the same each time it is sent
        names = sorted(line.cells, key=lambda name: name == "round")  # the last one proves that the others arrived
        return [Metric(permitted(name), line.cells[name], moment, line.round) for name in names]

    def _experiment(self) -> str:
        from mlflow.exceptions import MlflowException

        name = self.tracker.experiment
        if (known := self.client.get_experiment_by_name(name)) is not None:
            return known.experiment_id
        try:
            return self.client.create_experiment(name, artifact_location=beside(self.uri))
        except MlflowException:  # another process was faster
            known = self.client.get_experiment_by_name(name)
            if known is None:
                raise
            return known.experiment_id

    def _parent(self, experiment: str, sweep: Path) -> Memo:
        """Finds or creates the sweep's run; the first of its points creates it."""
        with memo.alone(sweep, self.tracker.patience_s):
            known = memo.load(sweep, self.tracker.package)
            memo.save(sweep, known)
            found = self._found(experiment, known, title(sweep), self.order.tags)
            memo.save(sweep, found)
        return found

    def _found(self, experiment: str, known: Memo, name: str, tags: dict[str, str]) -> Memo:
        """Finds the run with this state's token; creates one if there is none."""
        runs = self.client.search_runs([experiment], f"tags.`{TOKEN}` = '{known.token}'", max_results=1)
        if runs:
            return replace(known, run=runs[0].info.run_id, place=self.uri)
        own = {TOKEN: known.token, "mlflow.user": _user(), "mlflow.source.name": "fedexp", **tags}
        made = self.client.create_run(experiment, start_time=known.began_ms, tags=own, run_name=name)
        return replace(known, run=made.info.run_id, place=self.uri, round=0, files=False)

    def _tell_parameters(self) -> None:
        """Sends the parameters that MLflow lacks: it refuses changes, and some keys may differ in a resumed run."""
        from mlflow.entities import Param

        told = self.client.get_run(self.memo.run).data.params
        wanted = {permitted(name): text(value, LONGEST_PARAMETER) for name, value in self.order.parameters.items()}
        left = [Param(name, value) for name, value in wanted.items() if name not in told]
        for start in range(0, len(left), PARAMETERS):
            self.client.log_batch(self.memo.run, params=left[start : start + PARAMETERS])


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without names
        return "unknown"
