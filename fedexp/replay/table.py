"""A published table as it stands in `conf/replay/NAME.yml`: its source, its cells, and what is known to differ.

    source: McMahan et al., "Communication-Efficient Learning ..." (AISTATS 2017, arXiv 1602.05629), table 1
    label: FedAvg (2017)         # the source in a word; tables of one source have the same
    about: rounds to 97 % test accuracy, 2NN on MNIST
    measure: roa@0.97            # of every cell, unless it has its own
    overrides: [dataset=mnist]   # of every cell, before its own
    seeds: 8                     # how many of ours a cell has by default: 0, 1, 2, ...
    differs: ...                 # what is known to differ from the source
    cells:
      - name: iid B=10
        overrides: [federation=iid, local.batch_size=10]
        published: {value: 87, where: table 1}      # of one run; a mean has its spread and runs
        others: [{by: whom, value: 90, spread: 4, runs: 5}]
        minutes: 0.5             # of one run on one core, as `fedexp plan` says
        note: ...
        explained: iid B=10, scaled   # the cell that shows why this one differs: one change, and the number agrees
        number: rounds of B=10        # of cells that try for one published number in several settings
      - name: skewed           # several numbers of one run: cells "skewed, accuracy" and "skewed, loss"
        overrides: [federation=shards]
        numbers: [{name: accuracy, published: {value: 0.9}}, {name: loss, measure: test_loss}]

A file's ending keeps it apart from the options of config groups, which end in .yaml.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedexp.core.errors import ConfigError, did_you_mean, nearest_hint, normalize_word
from fedexp.files.atomic import display_path
from fedexp.files.untrusted_yaml import read_yaml
from fedexp.replay import catalog
from fedexp.replay.catalog import ENDING
from fedexp.replay.published import Published, demand, demand_within, parse_published, parse_replication
from fedexp.replay.quantity import CellQuantity

_NAME = re.compile(r"(?!\.)[\w.=, %()+-]{1,80}")  # not of a hidden folder, nor of `.` or `..`
_WORD = re.compile(r"\+{0,2}(?!(seed|hydra)\b)\w[\w./-]*=.*", re.DOTALL)
_MOST_SEEDS = 10_000
_SHORTEST = 4  # letters of a word that is sought in what tables say of themselves
_MOST_BYTES = 240  # of a cell's name, which is that of a folder


@dataclass(frozen=True)
class Cell:
    """One number of a table and the run that should give it."""

    name: str
    overrides: tuple[str, ...]
    measure: CellQuantity
    seeds: int
    published: Published | None = None
    replications: tuple[tuple[str, Published], ...] = ()
    minutes: float | None = None
    note: str = ""
    explained: str = ""
    number: str = ""

    @property
    def published_number(self) -> str:
        """The name of the published number that it tries for: its own, unless several cells try for one."""
        return self.number or self.name

    @property
    def folder(self) -> str:
        """The name of the cell's folder."""
        return re.sub(r"[^\w.=+-]+", "_", self.name)

    @property
    def fingerprint(self) -> str:
        """A fingerprint of eight letters that changes with the cell's words or measure."""
        return _fingerprint(*self.overrides, self.measure.text)

    @property
    def run(self) -> str:
        """A fingerprint of eight letters that changes with the cell's words."""
        return _fingerprint(*self.overrides)

    def words(self, seed: int) -> list[str]:
        """The words of its run with this seed."""
        return [*self.overrides, f"seed={seed}"]


@dataclass(frozen=True)
class PublishedTable:
    """A published table."""

    name: str
    source: str
    about: str
    cells: tuple[Cell, ...]
    differs: str = ""
    label: str = ""


def load(name: str) -> PublishedTable:
    """Reads the table of this name, or of a file of one's own that ends in .yml.

    Raises:
        ConfigError: there is none, or it does not say what a table must.
    """
    if name.endswith(ENDING):
        path = Path(name)
        if not path.is_file():
            raise ConfigError(
                f"there is no file {name}; give a table of your own as a file, or one of {_table_names()}"
            )
        return read(path)
    if name not in catalog.names():
        if Path(f"{name}{ENDING}").is_file():
            raise ConfigError(f"unknown table {name}; for the file beside you give {name}{ENDING}")
        raise ConfigError(f"unknown table {name}; {_guess(name)}; a table of your own is a file NAME{ENDING}")
    return read(catalog.tables_dir() / f"{name}{ENDING}")


def _guess(name: str) -> str:
    """The tables that are meant by a word: those of a similar name, else those whose sources speak of it."""
    if nearest := nearest_hint(name, catalog.names()):
        return nearest
    word, about = normalize_word(name), []
    if len(word) >= _SHORTEST:
        tables = map(read, (catalog.tables_dir() / f"{table}{ENDING}" for table in catalog.names()))
        about = [
            table.name for table in tables if word in normalize_word(f"{table.label} {table.about} {table.source}")
        ]
    if about:
        return f"{', '.join(about)} speak{'s' * (len(about) == 1)} of it"
    return did_you_mean(name, catalog.names())


def read(path: Path) -> PublishedTable:
    """Reads the table of a file."""
    content = read_yaml(path)
    where = display_path(path)
    if path.stem.startswith("."):
        raise ConfigError(
            f"{where}: a table must have a name before {ENDING} that does not begin with a dot; rename it"
        )
    common = {"overrides": [], "measure": "", "seeds": 8}
    kinds = {
        "source": str,
        "label": str,
        "about": str,
        "differs": str,
        "cells": list,
        "overrides": list,
        "measure": str,
        "seeds": int,
    }
    demand(content, kinds, ("source", "about", "cells"), where)
    common |= {key: content[key] for key in common if key in content}
    nodes = [(node, f"{where}: cell {number}") for number, node in enumerate(content["cells"], start=1)]
    cells = tuple(
        _parse_cell(cell_node, common, name) for node, name in nodes for cell_node in _split_numbers(node, name)
    )
    if not cells:
        raise ConfigError(f"{where} must have at least one cell under cells, got none")
    for number, cell in enumerate(cells):
        if cell.folder in [earlier.folder for earlier in cells[:number]]:
            raise ConfigError(f"{where}: two cells are called {cell.name}; each needs a name of its own")
    names = [cell.name for cell in cells]
    for cell in cells:
        if cell.explained and cell.explained not in names:
            hint = did_you_mean(cell.explained, names)
            raise ConfigError(f"{where}: explained of {cell.name} must name a cell of the table; {hint}")
    label = content.get("label", path.stem)
    return PublishedTable(path.stem, content["source"], content["about"], cells, content.get("differs", ""), label)


def _split_numbers(node: Any, where: str) -> list[Any]:
    """The node of a cell, or one node for each of its `numbers`."""
    if not isinstance(node, Mapping) or "numbers" not in node:
        return [node]
    numbers, shared_keys = node["numbers"], {key: value for key, value in node.items() if key != "numbers"}
    if not isinstance(numbers, list) or not all(isinstance(entry, Mapping) and "name" in entry for entry in numbers):
        raise ConfigError(f"{where}: numbers must be a list of numbers, each with a name, got {numbers!r}")
    if "name" not in shared_keys:
        raise ConfigError(f"{where}: name must be given; those of its numbers come after it")
    for key in ("published", "others"):
        if key in shared_keys:
            raise ConfigError(f"{where}: {key} must stand with the number that it is about, got it beside numbers")
    return [
        {"published": None, **shared_keys, **entry, "name": f"{shared_keys['name']}, {entry['name']}"}
        for entry in numbers
    ]


def _parse_cell(node: Any, common: Mapping[str, Any], where: str) -> Cell:
    kinds = {"name": str, "overrides": list, "published": dict | None, "others": list, "minutes": float, "note": str}
    kinds |= {"measure": str, "seeds": int, "explained": str, "number": str}
    demand(node, kinds, ("name", "overrides", "published"), where)
    if not _NAME.fullmatch(node["name"]) or len(node["name"].encode()) > _MOST_BYTES:
        raise ConfigError(
            f"{where}: name must be up to 80 letters, digits, spaces or .=,%()+-_ ({_MOST_BYTES} bytes) and not begin "
            f"with a dot, got {node['name']!r}"
        )
    overrides = (*common["overrides"], *node["overrides"])
    for word in overrides:
        if not isinstance(word, str) or not _WORD.fullmatch(word):
            raise ConfigError(f"{where}: overrides must be words such as selector=random, without a seed, got {word!r}")
    seeds = node.get("seeds", common["seeds"])
    demand_within(where, "seeds", seeds, 1, _MOST_SEEDS)
    demand_within(where, "minutes", node.get("minutes", 0), 0)
    published = None if node["published"] is None else parse_published(node["published"], f"{where}: published")
    measure = CellQuantity.parse(node.get("measure") or common["measure"], f"{where}: measure")
    if measure.is_count and published is not None and published.value <= 0:
        raise ConfigError(
            f"{where}: published: value must be above 0 where rounds are counted, got {published.value:g}"
        )
    return Cell(
        name=node["name"],
        overrides=overrides,
        measure=measure,
        seeds=seeds,
        published=published,
        replications=tuple(
            parse_replication(replication, f"{where}: others") for replication in node.get("others", [])
        ),
        minutes=node.get("minutes"),
        note=node.get("note", ""),
        explained=node.get("explained", ""),
        number=node.get("number", ""),
    )


def _fingerprint(*words: str) -> str:
    return hashlib.blake2b("\n".join(words).encode(), digest_size=4).hexdigest()


def _table_names() -> str:
    return ", ".join(catalog.names())
