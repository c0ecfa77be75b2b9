"""The trained model of a run folder as a network of PyTorch: everybody's, or the one that a client uses."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from fedexp.config.saved_config import read_config
from fedexp.config.trust import NO_TRUST, Trust
from fedexp.core.errors import MAX_LISTED, ConfigError, did_you_mean
from fedexp.core.values import State, Weights
from fedexp.export.encoder import Encoder, make_encoder
from fedexp.export.entries import set_entries
from fedexp.files import summary_json
from fedexp.files.atomic import display_path, shell_path
from fedexp.parts.dataset.contract import Facts
from fedexp.parts.features.contract import Features
from fedexp.parts.model.contract import Model
from fedexp.run import digests
from fedexp.run.state import checkpoint
from fedexp.run.state.inputs import DATA, digest_inputs, refuse_changed_inputs
from fedexp.run.tables import first_columns
from fedexp.simulation.build_world import build_experiment, load
from fedexp.simulation.measures.own_models import personal_models
from fedexp.simulation.setup.experiment import Experiment
from fedexp.simulation.world import World
from fedexp.training.client.networks import build_network
from fedexp.verify import record
from fedexp.verify.own_files import with_own_files
from fedexp.verify.record import RunRecord, SavedState
from fedexp.verify.rerun import Rerun, build_rerun

Client = int | str  # its number or its name
CPU, EXAMPLES = torch.device("cpu"), 8


@dataclass(frozen=True)
class TrainedModel:
    """A trained network on the CPU, in evaluation mode, and how examples become its inputs.

    `round` is after which round of the experiment `exp` it is; `client` whose model it is, as that was asked for, and
    `client_number` its number; None: everybody's. `examples` are a few test examples `[S, *shape]` in their stored
    form. `weights` are the entries as a run in the `world` scores them.
    """

    network: nn.Module
    encoder: Encoder
    examples: torch.Tensor
    round: int
    exp: Experiment
    client: Client | None
    client_number: int | None
    config: dict[str, Any]
    record: RunRecord
    world: World
    weights: Weights

    @property
    def draws_noise(self) -> bool:
        """Whether privacy rests on noise, which whoever knows the seed can draw again."""
        privacy = (self.record.summary or {}).get("privacy") or {}
        return self.exp.privacy.guarantees and bool(privacy.get("noise_multiplier", True))

    @property
    def is_outside_the_promise(self) -> bool:
        """Whether it is a client's own model of which a promise of privacy says nothing, since it is never sent."""
        if self.client_number is None:
            return False
        trains_unprotected = self.exp.local.companion is not None or self.exp.evaluation.fine_tune_epochs is not None
        return trains_unprotected or (self.exp.privacy.covers_uploads and self.exp.local.keeps_rows)


def load_trained(
    folder: Path, number: int | None = None, client: Client | None = None, trust: Trust = NO_TRUST
) -> TrainedModel:
    """The model after round `number` (the newest one that was saved) in a run folder.

    Raises:
        ConfigError: there is no such run, no saved state of that round, or no such client; the state is not that of
            the tables beside it, or the data are no longer those that the run was trained on.
    """
    config = read_config(folder, trust)
    run_record = record.read(folder, config)
    saved_state = _choose_state(run_record, number)
    rerun = build_rerun(config, run_record.engine, folder)
    state = rerun.state(saved_state)
    if objection := digests.read_chains(folder, first_columns(rerun.exp)).objection(state):
        where = display_path(saved_state.path)
        raise ConfigError(f"{where} {objection}; fedexp verify {shell_path(folder)} tells more")
    exp, world = rerun.exp, rerun.world
    _refuse_other_inputs(folder, saved_state.inputs, digest_inputs(world), exp)
    owner = None if client is None else _client_number(client, world)
    weights = Weights(_model_row(rerun, state, owner), state.models[0].layout)
    data, facts = load(exp)
    network = _network_with(weights, world, facts, display_path(saved_state.path))
    encoder = make_encoder(data, facts, raw=world.encoding.layers is not None)
    return TrainedModel(
        network=network,
        encoder=encoder,
        examples=data.test.x[:EXAMPLES],
        round=state.round,
        exp=exp,
        client=client,
        client_number=owner,
        config=config,
        record=run_record,
        world=world,
        weights=weights,
    )


def _network_with(weights: Weights, world: World, facts: Facts, source: str) -> nn.Module:
    """The network from stored examples to outputs with these entries, which are from the file `source`."""
    layers, network = world.encoding.layers, join_layers(world.exp.features, world.exp.model, facts)
    entries = weights.layout.views(weights.flat.cpu())
    if layers is not None:
        entries = {f"model.{name}": entry for name, entry in entries.items()}
        entries |= {f"features.{name}": entry for name, entry in layers.state_dict().items()}
    return set_entries(network, entries | _counters(network), source)


def load_encoder(folder: Path, trust: Trust = NO_TRUST) -> Encoder:
    """The encoder of a run folder's model; loads the data, and neither trains nor scores anything.

    Raises:
        ConfigError: there is no such run, or its data are not there, or no longer those that it was trained on.
    """
    config = read_config(folder, trust)
    exp = build_experiment(with_own_files(config, folder))
    data, facts = load(exp)
    states = (checkpoint.read(path, config, CPU) for path in reversed(checkpoint.list_states(folder)))
    newest = next((state for state in states if state is not None), None)
    _refuse_other_inputs(folder, {} if newest is None else newest.inputs, {DATA: data.sha256()}, exp)
    return make_encoder(data, facts, raw=exp.features.layers(facts) is not None)


def _refuse_other_inputs(folder: Path, inputs: Mapping[str, str], now: Mapping[str, str], exp: Experiment) -> None:
    """Raises ConfigError where inputs of now are not those of a state, or of the summary where the state has none."""
    summary = summary_json.read(folder) or {}
    saved = {DATA: summary["data_sha256"]} if "data_sha256" in summary else {}
    refuse_changed_inputs(folder, {**saved, **inputs}, now, exp, "give its model")


def join_layers(features: Features, model: Model, facts: Facts) -> nn.Module:
    """An untrained network from examples to outputs: what encodes examples, if anything does, and the model."""
    network = build_network(model.without_files(), features.facts(facts), 0, CPU)
    layers = features.layers(facts)
    return network if layers is None else nn.Sequential(OrderedDict(features=layers, model=network))


def _counters(network: nn.Module) -> dict[str, torch.Tensor]:
    """Whole numbers in a network, which no row holds, as they are."""
    return {name: entry for name, entry in network.named_buffers() if not entry.is_floating_point()}


def _choose_state(run_record: RunRecord, number: int | None) -> SavedState:
    """The saved state after this round, else the newest one."""
    by_round = {
        state.round: state for state in run_record.saved_states if 0 < state.round <= run_record.finished_rounds
    }
    where = display_path(run_record.folder)
    if not by_round and run_record.damaged:
        names = ", ".join(display_path(path) for path in run_record.damaged[:MAX_LISTED])
        raise ConfigError(
            f"{where} has no state of a finished round that can be read, but damaged files: {names}; put them back or "
            "run the experiment again"
        )
    if not by_round:
        cure = (
            f"run it, or go on with fedexp resume {shell_path(run_record.folder)}"
            if run_record.summary is None
            else "it is finished, so state.pt was removed; put it back or run the experiment again"
        )
        raise ConfigError(f"{where} has no saved state of a finished round; {cure}")
    if number is not None and number not in by_round:
        numbers = ", ".join(map(str, sorted(by_round)))
        raise ConfigError(
            f"--round must be a round whose state was saved, got {number}; there: {numbers} (keep_states=1 keeps all)"
        )
    return by_round[max(by_round) if number is None else number]


def _model_row(rerun: Rerun, state: State, client: int | None) -> torch.Tensor:
    """Everybody's model `[D]`, or that of a client: its cluster's, with what it keeps for itself."""
    world = rerun.world
    if client is None:
        choices = _describe_clients(world)
        if rerun.exp.scenario.trains_alone:
            raise ConfigError(f"every client trained alone in this run; choose by --client, {choices}")
        if clusters := len(state.models) - 1:
            raise ConfigError(
                f"the clients of this run use the models of their clusters, of which there are {clusters}; choose by "
                f"--client, {choices}"
            )
        return state.models[0].flat
    return personal_models(rerun.exp, world, state, np.array([client]))[0]


def _client_number(client: Client, world: World) -> int:
    """The number of a client given by its number or name; of two clients that a word may mean, the one of this name."""
    names = world.client_names or ()
    if client in names:
        return names.index(str(client))
    if str(client).isascii() and str(client).isdecimal() and int(client) < world.partition.clients:
        return int(client)
    hint = f"; {did_you_mean(str(client), names)}" if names else ""
    raise ConfigError(f"--client must be a client of the run, {_describe_clients(world)}, got {client}{hint}")


def _describe_clients(world: World) -> str:
    """The clients' names, or their numbers where they have none or too many."""
    names = world.client_names or ()
    return ", ".join(names) if 0 < len(names) <= MAX_LISTED else f"0 to {world.partition.clients - 1}"
