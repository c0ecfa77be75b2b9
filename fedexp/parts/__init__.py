"""Everything that a YAML file of `conf/` can choose, and the names that the author of a part imports: these alone.

`conf/GROUP/OPTION.yaml` names a class of `fedexp/parts/GROUP/OPTION.py`. What every option of the group must do is said
in `fedexp/parts/GROUP/contract.py`; its base class does nothing and is the option `none`. What a part may ask is said in
`fedexp/parts/context.py`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedexp.core.client_resources import Resources
    from fedexp.core.client_rows import ClientRows
    from fedexp.core.errors import ConfigError, RunError
    from fedexp.core.part import Fraction, Part, Positive, Range, option
    from fedexp.core.values import SERVER, Canaries, Columns, Layout, Memory, Plan, Trained, Uploads, Weights, finite
    from fedexp.parts.aggregator.contract import Aggregator
    from fedexp.parts.attack.contract import Attack
    from fedexp.parts.audit.contract import Audit
    from fedexp.parts.byzantine import Tolerant
    from fedexp.parts.clustering.contract import Clustering
    from fedexp.parts.context import Context
    from fedexp.parts.dataset.contract import Data, Dataset, Facts, Split
    from fedexp.parts.features.contract import Encoding, Features, Streams
    from fedexp.parts.federation.contract import Federation
    from fedexp.parts.federation.partition import Partition
    from fedexp.parts.fleet.contract import Fleet
    from fedexp.parts.layers import BatchNorm, Dropout
    from fedexp.parts.local.contract import LocalRule
    from fedexp.parts.model.contract import Model
    from fedexp.parts.pre_aggregation.contract import PreAggregation
    from fedexp.parts.pretraining.contract import Pretraining
    from fedexp.parts.privacy.contract import Privacy, Sampling
    from fedexp.parts.privacy.ledger import Ledger
    from fedexp.parts.selector.contract import Selector
    from fedexp.parts.server_optimizer.contract import ServerOptimizer
    from fedexp.parts.stop.contract import Stop
    from fedexp.parts.tracker.contract import Order, Receiver, Sending, Tracker
    from fedexp.parts.tracker.courier import Courier
    from fedexp.parts.tracker.lines import Line
    from fedexp.parts.tracker.memo import Memo
    from fedexp.parts.workload import Workload

_MODULES = (
    *("core.client_resources", "core.client_rows", "core.errors", "core.part", "core.values"),
    *(f"parts.{name}" for name in ("byzantine", "context", "workload")),
    *("parts.federation.partition", "parts.model.layers", "parts.privacy.ledger"),
)
