"""What every option of features and of pretraining must keep: both prepare a run before its first round."""

import pytest
import torch
from worlds import Tiny, world_of

from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.simulation.setup import compatibility

PUBLIC, EMPTY = "scenario.public_fraction=0.3", {"features": {}, "pretraining": {}}


class Preparation:
    """The tests of a `word` such as features=none; a group's own class names its words."""

    def test_needs_public_data_or_does_nothing(self, tiny: Tiny, word: str):
        exp = spec.build(tiny(word))
        if exp.features.needs_public or exp.pretraining.needs_public:
            message = f"{word} needs public data of the server, but the server has none; use scenario"
            with pytest.raises(ConfigError, match=message):
                compatibility.refuse(exp)
            compatibility.refuse(spec.build(tiny(word, PUBLIC)))
            return
        plain, public = world_of(tiny(word)), world_of(tiny(word, PUBLIC))
        assert plain.preparation_figures == public.preparation_figures == EMPTY
        assert torch.equal(plain.first.flat, public.first.flat)
        assert torch.equal(plain.train.x, public.train.x)

    def test_is_the_same_every_time_and_for_every_engine(self, tiny: Tiny, word: str):
        one, other = (world_of(tiny(word, PUBLIC, f"engine={engine}")) for engine in ("loop", "stacked"))
        assert torch.equal(one.first.flat, other.first.flat)
        assert torch.equal(one.train.x, other.train.x)
        assert torch.equal(one.test.x, other.test.x)

    def test_tells_numbers(self, tiny: Tiny, word: str):
        told = world_of(tiny(word, PUBLIC)).preparation_figures
        assert all(type(value) is float for figures in told.values() for value in figures.values())

    @pytest.mark.parametrize("shape", [(8,), (2, 16), (1, 8, 8)])
    def test_models_see_what_the_facts_say(self, tiny: Tiny, word: str, shape: tuple[int, ...]):
        words = (word, PUBLIC, f"dataset.shape=[{','.join(map(str, shape))}]")
        world = world_of(tiny(*words))
        facts = world.exp.features.facts(world.exp.dataset.facts(world.exp.data_dir))
        assert world.train.inputs(slice(0, 3)).shape == world.test.inputs(slice(0, 3)).shape == (3, *facts.shape)
        assert facts.subjects == world.exp.dataset.facts(world.exp.data_dir).subjects

    def test_runs_of_before_it_was_there_are_like_none(self, tiny: Tiny, word: str):
        old = tiny()
        del old["features"], old["pretraining"], old["scenario"]["public_fraction"]
        assert spec.build(old) == spec.build(tiny(word.partition("=")[0] + "=none"))
