"""What a run writes into its folder while it lasts, and when it ends."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fedexp.core.values import State, Uploads
from fedexp.files.run_tables import read_lines
from fedexp.parts.tracker.courier import TrackerClient
from fedexp.report.draw import client_images
from fedexp.report.read.skipped import read_digests
from fedexp.report.topics import clusters, curves, federation
from fedexp.run import banner, digests, summary
from fedexp.run.environment import changed_surroundings, device_name, surroundings
from fedexp.run.metric_notes import UndefinedMetrics, describe_undefined_clients
from fedexp.run.progress import Progress
from fedexp.run.state import checkpoint
from fedexp.run.state.inputs import digest_inputs
from fedexp.run.summary_table import summary_table
from fedexp.run.tables import GrowingCsv, cell_value, first_columns, round_rows, write_table
from fedexp.simulation.measures import client_scores, confusion_matrix, presence
from fedexp.simulation.round import Row
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World

if TYPE_CHECKING:
    import pandas as pd


class Logbook:
    """The tables, the saved states and the closing reports of one run."""

    def __init__(
        self,
        folder: Path,
        exp: Experiment,
        world: World,
        config: dict[str, Any],
        state: State,
        earlier: Sequence[dict[str, str]] = (),
    ) -> None:
        """`earlier` are the environments of the rounds up to `state`, as far as they are known."""
        self.folder, self.exp, self.world, self.config = folder, exp, world, config
        names, single = (*first_columns(exp), digests.NAME), ("metrics.csv", digests.NAME)
        self.tables = {name: GrowingCsv(folder / name, state.round, single=name in single) for name in names}
        self.digest_line = [{}, *read_lines(folder / digests.NAME, digests.COLUMNS)][-1]
        self.progress = Progress(exp.rounds, state.round)
        self.state, self.saved_round = state, state.round
        self.saved_at = time.perf_counter()
        self.tracker_client = TrackerClient()
        now = surroundings(exp, world.choice, world.pool.size)
        self.surroundings = [*(environment for environment in earlier if environment != now), now]
        self.change = changed_surroundings([*earlier][-1:], now) if earlier else None
        self.undefined, self.inputs = UndefinedMetrics(exp.metric_entries), digest_inputs(world)

    def __enter__(self) -> "Logbook":
        name = self.folder / "federation.csv"
        if not name.exists():
            federation.write_csv(name, self.world.class_counts, self.world.label_names, self.world.site_names)
        self._introduce()
        if self.state.round:
            self.progress.say(f"continuing after round {self.state.round}")
            if self.change:
                self.progress.note(f"{self.change}: the rounds to come may differ in bits from an uninterrupted run's")
            self._archive_due_state()  # if the run was killed before it had done so
        exp, world = self.exp, self.world
        self.tracker_client = exp.tracker.follow(self.folder, self.config, lambda: summary.provenance(exp, world))
        return self

    def _introduce(self) -> None:
        """Prints what is run, what may not be meant, how large it is and how it is computed."""
        exp, world, clients = self.exp, self.world, self.world.partition.clients
        for line in banner.lines(exp, clients):
            self.progress.say(line)
        for line in (*banner.notes(exp, clients), *world.data_doubts):
            self.progress.note(line)
        self.progress.say(
            f"{clients} client{'s' * (clients != 1)}, {len(world.partition.indices)} training examples, "
            f"{world.layout.parameters:,} parameters, {world.pool.size} worker(s) on {device_name(exp)}"
        )
        self.progress.say(f"engine {world.choice.name}: {world.choice.reason}")
        if world.public is not None:
            self.progress.say(f"public: {len(world.public)} training examples are the server's alone")
        for role, figures in world.preparation_figures.items():
            if figures:
                self.progress.say(f"{role}: " + ", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
        if (promise := summary.privacy_promise(exp)) is not None:
            self.progress.say(f"privacy: {promise}")

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if self.state.round > self.saved_round:
                self._save()
        finally:
            for table in self.tables.values():
                table.close()
            with suppress(OSError):  # the terminal may be closed
                self.progress.close()
            self.tracker_client.close(kind)

    def record(self, state: State, row: Row, uploads: Uploads) -> Row:
        """Writes a round's lines, and the state if the last saved one is old enough; returns metrics.csv's line."""
        rows, columns = round_rows(self.exp, self.world, state, row, uploads), first_columns(self.exp)
        lines = {name: self.tables[name].append(table_rows, columns[name]) for name, table_rows in rows.items()}
        self.digest_line = digests.next_line(self.digest_line, state, lines)
        self.tables[digests.NAME].append([self.digest_line], digests.COLUMNS)
        self.progress.round(row)
        for text in self.undefined.describe(row):
            self.progress.note(text)
        self.tracker_client.listen()
        self.state = state
        if self._archives_round() or time.perf_counter() - self.saved_at >= self.exp.checkpoint_s:
            self._save()
        self._archive_due_state()
        return {name: cell_value(row.get(name)) for name in self.tables["metrics.csv"].columns or ()}

    def conclude(self) -> "pd.DataFrame":
        """Saves the last state, draws the pictures, writes and prints the summary; returns metrics.csv as a table."""
        self.tables["metrics.csv"].sync()
        if self.state.round > self.saved_round or not (self.folder / checkpoint.NAME).exists():
            self._save()
        self.progress.close()
        reason = self.state.memory.get("stop", {}).get("reason")
        if reason:
            self.progress.say(f"stopped after round {self.state.round}: {reason}")
        table = summary.read_metrics(self.folder / "metrics.csv")
        figures = summary.figures(self.exp, self.world, self.state, table, read_digests(self.folder))
        facts = {**figures, **summary.provenance(self.exp, self.world)}
        if self.exp.pictures:
            picture, counts = self.folder / "federation.png", self.world.class_counts
            federation.draw(picture, counts, self.world.label_names, self.world.site_names)
            curves.draw(self.folder / "curves.png", table)
            self._draw_client_images()
        at_clients = self._write_last_tables()
        if self.exp.pictures and (at_clients or self.exp.clustering.has_clusters):
            clusters.draw(self.folder, self.world.partition.clients, self.state.round)
        summary.write(self.folder / "summary.json", facts)  # the last file: with it the run is finished
        if facts["constant_answer"]:
            self.progress.note(facts["constant_answer"])
        if facts["audit"] is not None:
            self.progress.say(facts["audit"]["statement"])
        self.progress.say(summary_table({**facts, "folder": str(self.folder)}))
        return table

    def _write_last_tables(self) -> bool:
        """Writes the last models' tables and who was there; returns whether one is of models at the clients."""
        at_clients = client_scores.score_rows(self.exp, self.world, self.state)
        answers = confusion_matrix.rows(self.exp, self.world, self.state)
        spans = presence.rows(self.exp, self.world, self.state)
        last_tables = {"client_scores.csv": at_clients, confusion_matrix.NAME: answers, presence.NAME: spans}
        for name, lines in last_tables.items():
            if lines:
                write_table(self.folder / name, lines, tuple(lines[0]))
        if note := describe_undefined_clients(at_clients):
            self.progress.note(note)
        return bool(at_clients)

    def _draw_client_images(self) -> None:
        """Draws what clients' examples look like, if they are images and the clients' features differ."""
        world, partition = self.world, self.world.sites
        if not (self.exp.federation.shifts_features and world.train.images):
            return
        client_data = {
            client: world.train.to_device(partition.shard(client)[: client_images.CLIENT_IMAGES])
            for client in client_images.choose_image_clients(partition.sizes)
        }
        images = {client: world.train.x[index].cpu().numpy() for client, index in client_data.items()}
        high = 255.0 if world.train.x.dtype == torch.uint8 else float(world.train.x.max())
        client_images.draw_images(self.folder / "seen.png", images, high)

    def _archives_round(self) -> bool:
        return self.exp.keep_states > 0 and self.state.round % self.exp.keep_states == 0

    def _archive_due_state(self) -> None:
        """Copies the newest state into `states/` if the state of its round is to stay."""
        if self._archives_round():
            checkpoint.keep(self.folder, self.state.round)

    def _save(self) -> None:
        for table in self.tables.values():
            table.sync()
        choice = asdict(self.world.choice)
        checkpoint.save(self.folder, self.state, self.config, choice, self.surroundings, self.inputs)
        self.saved_round, self.saved_at = self.state.round, time.perf_counter()
