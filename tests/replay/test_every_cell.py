import re

import pytest

from fedexp.config.compose import Request, make_composer
from fedexp.config.location import conf_dir
from fedexp.parts.dataset.cifar10 import Cifar10
from fedexp.parts.dataset.har import Har
from fedexp.parts.dataset.mnist import Mnist
from fedexp.replay import catalog, table
from fedexp.replay.table import Cell
from fedexp.run.isolation import isolate_process
from fedexp.sweep.points import Point, compose, validate_point


def few(cells: tuple[Cell, ...]) -> list[Cell]:
    """Cells that hold every word of all of them, where words that differ by numbers alone are the same."""
    words = {cell: {re.sub(r"\d+(\.\d+)?", "1", word) for word in cell.overrides} for cell in cells}
    missing, chosen = set().union(*words.values()), []
    while missing:
        chosen.append(max(cells, key=lambda cell: len(words[cell] & missing)))
        missing -= words[chosen[-1]]
    return chosen


@pytest.mark.parametrize("name", catalog.names())
def test_every_cell_can_be_composed(name: str, monkeypatch: pytest.MonkeyPatch):
    """Its words are known and its parts can work together; whether the files of the data are there is not asked."""
    for dataset in (Mnist, Cifar10, Har):
        monkeypatch.setattr(dataset, "require", lambda *_: None)
    request = Request(conf_dir(), [])
    with isolate_process():
        composer = make_composer(request)
        config = compose(composer, request)
        for number, cell in enumerate(few(table.load(name).cells)):
            validate_point(composer, config, Point(number, cell.words(0)))
