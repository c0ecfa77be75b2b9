"""Words of other tools: what is advised instead exists, and nothing that exists is hidden."""

import re

import pytest

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.config.vocabulary import synonyms
from fedexp.core.errors import normalize_word

ADVICE = sorted(
    {
        *(synonyms.key_synonym(key) or "" for key in synonyms.KEYS),
        *(words for names in synonyms.OPTIONS.values() for words in names.values()),
        *filter(None, synonyms.NEAREST.values()),
    }
)


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


@pytest.mark.parametrize("words", [words for words in ADVICE if re.search("=\\w+(, \\w+)* or \\w+", words)])
def test_every_advised_alternative_exists(words):
    """`algorithm=fedadam, fedyogi or fedadagrad` names three options of one group."""
    for group, listed in re.findall(r"(\w+)=(\w+(?:, \w+)* or \w+)(?![\w=])", words):
        assert set(re.split(", | or ", listed)) <= set(catalog.options(conf_dir(), group)), words


def test_no_option_or_key_is_a_synonym_of_another():
    for group, names in synonyms.OPTIONS.items():
        assert not set(names) & {re.sub("_", "", option) for option in catalog.options(conf_dir(), group)}, group
    assert not set(synonyms.KEYS) & set(catalog.groups(conf_dir())) | set(synonyms.KEYS) & set(catalog.root(conf_dir()))


def test_a_method_that_is_said_to_be_absent_is_no_option_and_no_synonym():
    groups = catalog.groups(conf_dir())
    here = {normalize_word(name) for group in groups for name in catalog.options(conf_dir(), group)}
    here |= {name for names in synonyms.OPTIONS.values() for name in names}
    assert not here & synonyms.NEAREST.keys()
    assert all(name == normalize_word(name) for name in synonyms.NEAREST)


@pytest.mark.parametrize("word", ["FedOpt", "fed_opt", "fed-opt", "FED OPT"])
def test_case_blanks_and_dashes_do_not_count(word):
    assert synonyms.option_synonym("algorithm", word) == "algorithm=fedadam, fedyogi or fedadagrad"
    assert synonyms.option_synonym("model", word) is None
    assert synonyms.key_synonym(word) is None


@pytest.mark.parametrize("key", [key for key, words in synonyms.KEYS.items() if "{" in words])
def test_the_value_that_was_typed_is_kept(key):
    """A number where the example is a number, several where it is a list, a name where it is a name."""
    example = "".join(re.findall(r"\{(.*)\}", synonyms.KEYS[key]))
    typed = "7,8" if "," in example else "7" if re.match(r"\d", example) else "cpu"
    assert synonyms.key_synonym(key, typed) == re.sub(r"\{.*\}", typed, synonyms.KEYS[key])
    assert example in (synonyms.key_synonym(key) or "")
    assert example in (synonyms.key_synonym(key, "two words") or "")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("mu", "many", "algorithm=fedprox local.mu=0.01"),
        ("mu", "0.1,1", "algorithm=fedprox local.mu=0.1,1"),
        ("seeds", "[3,4]", "-m seed=3,4"),
        ("seeds", "5", "-m seed=0,1,2"),
        ("device", "gpu", "engine.device=cuda"),
        ("device", "0", "engine.device=cuda"),
        ("name", "7", "hydra.run.dir=outputs/7"),
    ],
)
def test_a_value_that_does_not_fit_is_not_told(key, value, words):
    assert synonyms.key_synonym(key, value) == words
