"""Weights & Biases: files in the folder `wandb` of the outputs, or the service.

Nothing leaves the machine with `mode=offline`; `wandb sync outputs/wandb/offline-run-*` sends it later. A run that goes
on offline begins a second such folder under the same id; wandb 0.31 sends both as one run, older ones want `--append`
for the second. These folders hold links, so they lie beside the runs and not in them, where links are refused.

wandb writes and sends what it was given some seconds later, and not at all once it is killed. So a new connection asks
which round is the last that is there, in its files or at the service.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from fedexp.parts.tracker.contract import Order, Receiver, SendingTracker
from fedexp.parts.tracker.lines import Line
from fedexp.parts.tracker.memo import SyncState
from fedexp.parts.tracker.wandb_log import last_step

FOLDER = "wandb"
SERVICE = "https://api.wandb.ai"


class WandB(SendingTracker):
    """Files that `wandb sync` sends, or the service itself, with the key that `wandb login` has stored."""

    package = "wandb"

    project: str = "fedexp"
    entity: str | None = None
    url: str = SERVICE
    mode: Literal["offline", "online"] = "offline"

    @property
    def named_addresses(self) -> tuple[str, ...]:
        """None offline: its files stay in the folder."""
        return () if self.mode == "offline" else (f"{self.url.rstrip('/')}/{self.entity or '-'}/{self.project}",)

    def open(self, order: Order, state: SyncState) -> "WandbRun":
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        return WandbRun(self, order, state)


class WandbRun(Receiver):
    """A run of Weights & Biases; a round is a step of it."""

    def __init__(self, tracker: WandB, order: Order, state: SyncState) -> None:
        self.tracker, self.order, self.state = tracker, order, state

    @cached_property
    def run(self) -> Any:
        """The open run. Offline every opening makes another folder, so it waits until there is something to send."""
        import wandb  # takes a second

        settings = wandb.Settings(
            base_url=self.tracker.url,
            console="off",
            silent=True,
            init_timeout=30,
            disable_git=True,
            save_code=False,
            x_disable_stats=True,
            x_disable_meta=True,
            x_save_requirements=False,
        )
        return wandb.init(
            project=self.tracker.project,
            entity=self.tracker.entity,
            id=self.state.token,
            name=self.order.folder.name,
            dir=self._outputs(),
            mode=self.tracker.mode,
            resume="allow",
            config={**self.order.parameters, "fedexp": self.order.tags},
            settings=settings,
        )

    def begin(self) -> SyncState:
        if self.tracker.mode == "offline":
            last = last_step(self._outputs() / FOLDER, self.state.token, self.tracker.project)
        else:
            last = max(0, self.run.starting_step - 1)
        state = replace(self.state, run=self.state.token, round=last)
        if last < self.state.round:
            state = replace(state, files=False)
        needs_run = self.tracker.mode == "online" or not last
        return replace(state, place=self.run.url or self.run.dir) if needs_run else state

    def _outputs(self) -> Path:
        """The folder that the files go to: `outputs` above the run, else the one that the run lies in.

        Raises:
            OSError: its `wandb` is a link, or no folder.
        """
        above = [parent for parent in self.order.folder.parents if parent.name == "outputs"]
        outputs = [*above, self.order.folder.parent][0]
        files = outputs / FOLDER
        files.mkdir(exist_ok=True)
        if files.is_symlink():
            raise OSError(f"{files} must be a folder, but is a link")
        return outputs

    def send(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self.run.log(dict(line.cells), step=line.round, commit=True)

    def finish(self, status: str, summary: Line | None, files: Sequence[Path]) -> None:
        if summary is None and "run" not in vars(self):
            return
        if summary is not None:
            self.run.summary.update(dict(summary.cells))
        for path in files:
            if path.suffix == ".png":  # the numbers are there already; its own `save` would make links
                shutil.copyfile(path, Path(self.run.dir, path.name))
        self.run.finish(exit_code=0 if status == "FINISHED" else 1)
