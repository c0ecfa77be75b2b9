"""The parts that config groups choose, and the only names that the author of a part may import.

`conf/GROUP/OPTION.yaml` names a class of `fedexp/parts/GROUP/OPTION.py`. What every option of a group must do is said
in `fedexp/parts/GROUP/contract.py`. Where a group can do without, the base class there does nothing: it is `none`, or
what the group calls it. What a part may ask is said in `fedexp/parts/context.py`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedexp.config.roles import ROLES

if TYPE_CHECKING:
    from fedexp.config.roles import Role
    from fedexp.core.client_resources import Resources, arrivals
    from fedexp.core.client_rows import ClientRows, store_rows
    from fedexp.core.errors import ConfigError, RunError, did_you_mean, first_line
    from fedexp.core.initialise import Law, initialise
    from fedexp.core.part import MAX_INTEGER, Fraction, Part, Positive, PositiveOrInfinite, Range, option
    from fedexp.core.random_streams import stream
    from fedexp.core.torch_generator import seed_torch
    from fedexp.core.values import (
        LABEL_BYTES,
        SERVER,
        Canaries,
        Columns,
        Layout,
        Memory,
        Plan,
        Trained,
        Uploads,
        Weights,
        finite,
        lookup_by_owner,
    )
    from fedexp.data.encoding import held_out_mask, standardise
    from fedexp.data.store import Arrays, find_user_file, find_user_path, load_or_make, stamp
    from fedexp.data.tokens import Unit, encode_tokens, tokenize, vocabulary
    from fedexp.maths.curve_metrics import HIGHER_IS_BETTER, SHARES, main_metric
    from fedexp.maths.optimizer_steps import adam_step, descend, heavy_ball, mask_rows, path_lengths, select_rows
    from fedexp.maths.proximal import Penalty, proximal_fraction, proximal_residual
    from fedexp.maths.rows import blocks, distances_to, mix_rows, sorted_columns, squared_distances, weighted_median
    from fedexp.maths.shapley.estimate import Shapley
    from fedexp.parts.aggregator.contract import Aggregator
    from fedexp.parts.attack.contract import Attack
    from fedexp.parts.attack.forging import AttackerKnowledge, ModelPoisoning
    from fedexp.parts.audit.contract import Audit
    from fedexp.parts.augment.contract import Augment
    from fedexp.parts.byzantine import Tolerant
    from fedexp.parts.clustering.agreement import adjusted_rand
    from fedexp.parts.clustering.contract import Clustering, Event, Models, mean_of_clusters
    from fedexp.parts.codec.contract import Codec
    from fedexp.parts.context import Context
    from fedexp.parts.dataset.contract import IGNORED, Data, Dataset, Facts, Split, split_by_mask
    from fedexp.parts.features.contract import Encoding, Features, Streams
    from fedexp.parts.federation.contract import Federation, Partition
    from fedexp.parts.federation.owners import partition_by_owner
    from fedexp.parts.fleet.contract import Fleet
    from fedexp.parts.layers import LSTM, AddChannel, BatchNorm, Dropout
    from fedexp.parts.local.contract import LocalRule, ModelOutputs
    from fedexp.parts.loss.contract import Loss
    from fedexp.parts.model.contract import Model
    from fedexp.parts.network_errors import readable_network
    from fedexp.parts.pre_aggregation.contract import PreAggregation
    from fedexp.parts.pretraining.contract import Pretraining
    from fedexp.parts.privacy.contract import Ledger, Privacy, Sampling
    from fedexp.parts.schedule.contract import Schedule
    from fedexp.parts.selector.contract import Selector
    from fedexp.parts.server_optimizer.contract import ServerOptimizer
    from fedexp.parts.stop.contract import Stop
    from fedexp.parts.tracker.contract import Line, Order, Receiver, SendingTracker, SyncState, Tracker, TrackerClient
    from fedexp.parts.workload import Workload


__all__ = [
    "HIGHER_IS_BETTER",
    "IGNORED",
    "LABEL_BYTES",
    "LSTM",
    "MAX_INTEGER",
    "SERVER",
    "SHARES",
    "AddChannel",
    "Aggregator",
    "Arrays",
    "Attack",
    "AttackerKnowledge",
    "Audit",
    "Augment",
    "BatchNorm",
    "Canaries",
    "ClientRows",
    "Clustering",
    "Codec",
    "Columns",
    "ConfigError",
    "Context",
    "Data",
    "Dataset",
    "Dropout",
    "Encoding",
    "Event",
    "Facts",
    "Features",
    "Federation",
    "Fleet",
    "Fraction",
    "Law",
    "Layout",
    "Ledger",
    "Line",
    "LocalRule",
    "Loss",
    "Memory",
    "Model",
    "ModelOutputs",
    "ModelPoisoning",
    "Models",
    "Order",
    "Part",
    "Partition",
    "Penalty",
    "Plan",
    "Positive",
    "PositiveOrInfinite",
    "PreAggregation",
    "Pretraining",
    "Privacy",
    "Range",
    "Receiver",
    "Resources",
    "Role",
    "RunError",
    "Sampling",
    "Schedule",
    "Selector",
    "SendingTracker",
    "ServerOptimizer",
    "Shapley",
    "Split",
    "Stop",
    "Streams",
    "SyncState",
    "Tolerant",
    "Tracker",
    "TrackerClient",
    "Trained",
    "Unit",
    "Uploads",
    "Weights",
    "Workload",
    "adam_step",
    "adjusted_rand",
    "arrivals",
    "blocks",
    "descend",
    "did_you_mean",
    "distances_to",
    "encode_tokens",
    "find_user_file",
    "find_user_path",
    "finite",
    "first_line",
    "heavy_ball",
    "held_out_mask",
    "initialise",
    "load_or_make",
    "lookup_by_owner",
    "main_metric",
    "mask_rows",
    "mean_of_clusters",
    "mix_rows",
    "option",
    "partition_by_owner",
    "path_lengths",
    "proximal_fraction",
    "proximal_residual",
    "readable_network",
    "seed_torch",
    "select_rows",
    "sorted_columns",
    "split_by_mask",
    "squared_distances",
    "stamp",
    "standardise",
    "store_rows",
    "stream",
    "tokenize",
    "vocabulary",
    "weighted_median",
]
_HOMES = (  # those without PyTorch first: a tracker is imported by a process that needs none
    *("fedexp.config.roles", "fedexp.core.errors", "fedexp.core.part", "fedexp.parts.tracker.contract"),
    *(f"fedexp.core.{name}" for name in ("values", "client_resources", "client_rows", "initialise", "random_streams")),
    *(f"fedexp.maths.{name}" for name in ("rows", "optimizer_steps", "proximal", "curve_metrics", "shapley.estimate")),
    *(f"fedexp.data.{name}" for name in ("store", "encoding", "tokens")),
    *(f"fedexp.parts.{name}" for name in ("byzantine", "context", "layers", "network_errors", "workload")),
    *(f"fedexp.parts.{name}" for name in ("attack.forging", "clustering.agreement", "federation.owners")),
    "fedexp.core.torch_generator",
    *(role.contract.rpartition(".")[0] for role in ROLES if role.contract.startswith("fedexp.parts.")),
)


def __getattr__(name: str) -> Any:
    """Imports a name when it is asked for: commands that load no part must not wait for PyTorch."""
    if name in __all__:
        for module in _HOMES:
            if hasattr(imported := import_module(module), name):
                return getattr(imported, name)
    raise AttributeError(f"module 'fedexp.parts' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names above, which are there although they are imported when they are asked for."""
    return [*globals(), *__all__]
