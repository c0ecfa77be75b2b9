"""Words of other tools: what is advised instead exists, and nothing that exists is hidden."""

import re

import pytest

from fedexp.config import catalog, synonyms
from fedexp.config.location import conf_dir

ADVICE = sorted({*synonyms.KEYS.values(), *(words for names in synonyms.OPTIONS.values() for words in names.values())})


@pytest.mark.parametrize("words", ADVICE)
def test_every_advised_option_and_key_exists(words):
    pairs = re.findall(r"([a-z_][\w.]*)=([\w.]+)", words)
    chosen = {group: option for group, option in pairs if group in catalog.groups(conf_dir())}
    for group, option in list(chosen.items()):
        if (path := conf_dir() / group / f"{option}.yaml").is_file():
            chosen |= catalog.choices(path)
    keys = catalog.keys(conf_dir(), chosen)
    assert pairs
    for name, value in pairs:
        if name.startswith("hydra."):
            continue
        if name not in chosen:
            assert name in keys, words
        elif value.islower():
            assert value in catalog.options(conf_dir(), name) or value == "...", words


def test_no_option_or_key_is_a_synonym_of_another():
    for group, names in synonyms.OPTIONS.items():
        assert not set(names) & {re.sub("_", "", option) for option in catalog.options(conf_dir(), group)}, group
    assert not set(synonyms.KEYS) & set(catalog.groups(conf_dir())) | set(synonyms.KEYS) & set(catalog.root(conf_dir()))


@pytest.mark.parametrize("word", ["FedOpt", "fed_opt", "fed-opt", "FED OPT"])
def test_case_blanks_and_dashes_do_not_count(word):
    assert synonyms.option_synonym("algorithm", word) == "algorithm=fedadam, fedyogi or fedadagrad"
    assert synonyms.option_synonym("model", word) is None
    assert synonyms.key_synonym(word) is None
