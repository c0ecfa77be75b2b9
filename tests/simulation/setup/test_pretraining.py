"""Pretrainings of users on a server without public data."""

import pytest
from worlds import Tiny, world_of

from fedexp.core.errors import ConfigError


def test_a_model_may_be_brought_by_a_server_that_holds_no_data(tiny: Tiny):
    world = world_of({**tiny(), "pretraining": {"_target_": "own_pretrainings.Brought"}})
    assert (world.first.flat == 1).all()
    assert world.preparation_figures["pretraining"].keys() == {"seconds"}


def test_who_trains_must_ask_for_public_data(tiny: Tiny):
    said = "^pretraining=own_pretrainings.Forgetful: prepare must train on public data only if it asks for them"
    with pytest.raises(ConfigError, match=said):
        world_of({**tiny(), "pretraining": {"_target_": "own_pretrainings.Forgetful"}})
