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
    from fedexp.core.client_resources import Resources
    from fedexp.core.client_rows import ClientRows
    from fedexp.core.errors import ConfigError, RunError
    from fedexp.core.part import Fraction, Part, Positive, Range, option
    from fedexp.core.values import SERVER, Canaries, Columns, Layout, Memory, Plan, Trained, Uploads, Weights, finite
    from fedexp.parts.aggregator.contract import Aggregator
    from fedexp.parts.attack.contract import Attack
    from fedexp.parts.audit.contract import Audit
    from fedexp.parts.augment.contract import Augment
    from fedexp.parts.byzantine import Tolerant
    from fedexp.parts.clustering.contract import Clustering
    from fedexp.parts.codec.contract import Codec
    from fedexp.parts.context import Context
    from fedexp.parts.dataset.contract import Data, Dataset, Facts, Split
    from fedexp.parts.features.contract import Encoding, Features, Streams
    from fedexp.parts.federation.contract import Federation, Partition
    from fedexp.parts.fleet.contract import Fleet
    from fedexp.parts.layers import BatchNorm, Dropout
    from fedexp.parts.local.contract import LocalRule, ModelOutputs
    from fedexp.parts.loss.contract import Loss
    from fedexp.parts.model.contract import Model
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
    "SERVER",
    "Aggregator",
    "Attack",
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
    "Facts",
    "Features",
    "Federation",
    "Fleet",
    "Fraction",
    "Layout",
    "Ledger",
    "Line",
    "LocalRule",
    "Loss",
    "Memory",
    "Model",
    "ModelOutputs",
    "Order",
    "Part",
    "Partition",
    "Plan",
    "Positive",
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
    "Split",
    "Stop",
    "Streams",
    "SyncState",
    "Tolerant",
    "Tracker",
    "TrackerClient",
    "Trained",
    "Uploads",
    "Weights",
    "Workload",
    "finite",
    "option",
]
_HOMES = (  # those without PyTorch first: a tracker is imported by a process that needs none
    *("fedexp.config.roles", "fedexp.core.errors", "fedexp.core.part", "fedexp.parts.tracker.contract"),
    *(f"fedexp.core.{name}" for name in ("values", "client_resources", "client_rows")),
    *(f"fedexp.parts.{name}" for name in ("byzantine", "context", "layers", "workload")),
    *(role.contract.rpartition(".")[0] for role in ROLES if role.contract.startswith("fedexp.parts.")),
)


def __getattr__(name: str) -> Any:
    """Imports a name when it is asked for: commands that load no part must not wait for PyTorch."""
    if name in __all__:
        for module in _HOMES:
            if hasattr(imported := import_module(module), name):
                return getattr(imported, name)
    raise AttributeError(f"module 'fedexp.parts' has no attribute {name!r}")
