from pathlib import Path

import pytest

from fedexp.config.compose import Request, start
from fedexp.config.location import conf_dir
from fedexp.data import vision
from fedexp.replay import shelf, table
from fedexp.run.isolation import isolated
from fedexp.sweep.points import Point, compose, configured

HOUSE = Path(__file__).parents[2]


@pytest.mark.parametrize("name", shelf.names())
def test_every_cell_can_be_run(name: str, monkeypatch: pytest.MonkeyPatch):
    """Its words are known, its parts can work together; whether the data is there is not asked."""
    monkeypatch.setattr(vision, "require", lambda *_: None, raising=False)
    cells = table.load(name).cells
    request = Request(conf_dir(), [])
    with isolated():
        composer = start(request)
        config = compose(composer, request)
        for number, cell in enumerate(cells):
            configured(composer, config, Point(number, cell.words(0)))
