"""The server's half of FedDyn is tested with its clients, in tests/parts/local/test_feddyn.py; here what it refuses."""

import pytest
from worlds import Tiny

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.parts.aggregator.feddyn import DynamicMean
from fedexp.simulation.setup import compatibility


def test_a_negative_alpha_is_refused():
    with pytest.raises(ConfigError, match="alpha must be a number >= 0, got -1"):
        DynamicMean(alpha=-1)


def test_uploads_that_began_with_older_models_are_refused(tiny: Tiny):
    words = ("algorithm=feddyn", "pacing=buffered", "pacing.clients=3", "pacing.buffer=1")
    with pytest.raises(ConfigError, match="remembers with the clients how far each went from the model of the round"):
        compatibility.refuse(spec.build(tiny(*words)))
