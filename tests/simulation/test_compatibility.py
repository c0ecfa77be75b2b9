"""Every row of the table refuses what it says, and what it says to use instead is accepted."""

import re
from typing import Any

import pytest
from composing import CONF, config

from fedexp.config import catalog, roles
from fedexp.core import part as spec
from fedexp.core.errors import ConfigError
from fedexp.simulation import compatibility
from fedexp.simulation.compatibility import ROWS, Row

NEEDED = {  # keys without a default, and what brings out a flag that depends on them
    "privacy": ("privacy.clip=1", "privacy.delta=1e-5", "privacy.noise_multiplier=1"),
    "stop=target": ("stop.accuracy=0.9",),
    "stop=simulated_time": ("stop.seconds=9",),
    "stop=privacy_budget": ("stop.epsilon=1",),
    "fleet=trace": ("fleet.path=trace.csv",),
    "aggregator=norm_clipping": ("aggregator.clip=1",),
    "aggregator=centered_clipping": ("aggregator.clip=1",),
    "audit=canaries": ("audit.score=uploads",),
    "evaluation=local_models": ("evaluation.local_models=true",),
    "=holds_public": (),
}
SMALL = ("dataset=synthetic", "model=mlp", "federation=iid")


def words_with(role: str, flag: str) -> list[tuple[str, ...]]:
    """What brings out a flag: an option of the role for which it is so, with the keys that it needs."""
    if not role or role == "evaluation":
        return [NEEDED[f"{role}={flag.removeprefix('not ')}"]]
    return [
        words
        for option in catalog.options(CONF, role)
        if compatibility._is(built(words := asked(role, option)), role, flag)
    ]


def asked(role: str, option: str) -> tuple[str, ...]:
    keys = NEEDED.get(f"{role}={option}", NEEDED.get(role, ()) if option != "none" else ())
    return (f"{role}={option}", *keys)


def built(words: tuple[str, ...]) -> Any:
    return spec.build(config(*SMALL, *words))


def names(row: Row) -> str:
    return f"{row.who}.{row.has}-{row.other}.{row.lacks}"


@pytest.mark.parametrize("row", ROWS, ids=names)
class TestRow:
    def test_refuses_what_it_says(self, row: Row):
        left, right = words_with(row.who, row.has)[0], words_with(row.other, row.lacks)[0]
        exp = built((*left, *right))
        assert row.holds(exp)
        told = row.sentence(exp)
        assert re.fullmatch(r"\S.*, but \S.*; use \S.*", told)
        assert "{" not in told
        with pytest.raises(ConfigError) as refused:
            compatibility.refuse(exp)
        assert "\n" not in str(refused.value)

    def test_what_it_says_to_use_is_another_case(self, row: Row):
        left, right = words_with(row.who, row.has)[0], words_with(row.other, row.lacks)[0]
        first = row.use.split(", or ")[0].split(" or ")[0]
        instead = {"evaluation.personal_fraction": "evaluation.local_models=false"}.get(first, first)
        kept = [word for word in (*left, *right) if not _replaced(word, instead)]
        needed = NEEDED["privacy"] if "privacy=dp_sgd" in instead else ()
        assert not row.holds(built((*kept, *instead.split(), *needed)))

    def test_somebody_has_each_flag_and_somebody_has_not(self, row: Row):
        for role, flag in ((row.who, row.has), (row.other, row.lacks)):
            if role in roles.names():
                assert 0 < len(words_with(role, flag)) < len(catalog.options(CONF, role)), (role, flag)


def _replaced(word: str, instead: str) -> bool:
    """Whether a word is about what the cure says anew: the same key, or a key of the option that goes."""
    key = word.partition("=")[0]
    return any(key == new.partition("=")[0] or key.startswith(f"{new.partition('=')[0]}.") for new in instead.split())
