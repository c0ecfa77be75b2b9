"""The names of clients that are the people, devices or hospitals that the dataset knows by name."""

import numpy as np

from fedexp.core.errors import ConfigError
from fedexp.files.table_names import name_with_control
from fedexp.parts.dataset.contract import Data
from fedexp.parts.federation.partition import Partition
from fedexp.simulation.setup.experiment import Experiment


def find_site_names(exp: Experiment, data: Data, all_clients: Partition) -> tuple[str, ...] | None:
    """The name of each client, `[N]`; of a client that is several people their names with ` + ` between.

    None where the federation is not one of people, or nobody knows their names.

    Raises:
        ConfigError: a name would not stay on its line of a table, or a class has that of their column.
    """
    names, subject = exp.federation.subject_names(data.subject_names), data.train.subject
    if names is None:
        return None
    numbers = exp.federation.resolve_subjects(None if subject is None else subject.numpy())
    if numbers is None:
        return None
    if (name := name_with_control(names)) is not None:
        raise ConfigError(
            f"names of clients must have no line breaks or other control characters, got {name[:40]!r}; rename the "
            "client in the data"
        )
    if any(name.strip() == "name" for name in data.class_names):
        raise ConfigError(
            "no class may be called 'name' where clients have names: federation.csv has such a column; rename the class"
        )
    shards = (all_clients.shard(client) for client in range(all_clients.clients))
    return tuple(" + ".join(names[number] for number in np.unique(numbers[shard])) for shard in shards)
