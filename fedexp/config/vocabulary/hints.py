"""What was probably meant by a word that was refused, whatever command it was given to."""

from collections.abc import Mapping, Sequence

from fedexp.config import catalog
from fedexp.config.location import conf_dir
from fedexp.config.vocabulary import synonyms
from fedexp.core.errors import did_you_mean, normalize_word

_MOST_GROUPS = 3  # that an option's name may stand for before naming them says nothing


def option_hint(group: str, option: str, options: Sequence[str]) -> str:
    """What was probably meant by an option that its group does not have: a synonym, one of another group, a near name.

    It begins with "; "; empty where there is no guess.
    """
    if synonym := synonyms.option_synonym(group, option):
        return f"; write {synonym}"
    near = f"; {did_you_mean(option, options)}" if options else ""
    if any(normalize_word(name) == normalize_word(option) for name in options):
        return near
    if elsewhere := groups_with_option(option):
        return f"; {option} belongs to {elsewhere}"
    if (words := synonyms.nearest_in_kind(option)) is not None:
        return f"; {option} is not here, {f'the nearest in kind: {words}' if words else 'nor is anything of its kind'}"
    if not near.startswith("; did you mean") and (synonym := synonyms.any_option_synonym(option)):
        return f"; write {synonym}"
    return near


def hint_anywhere(option: str) -> str:
    """How an option is chosen whose group was not named; empty for a word that nobody uses."""
    if groups := groups_with_option(option):
        return f"{option} belongs to {groups}"
    synonym = synonyms.any_option_synonym(option)
    return f"write {synonym}" if synonym else ""


def groups_with_option(word: str) -> str:
    """The groups that have an option of this name, and how it is chosen; empty if none has, or many do."""
    conf = conf_dir()
    pairs = pairs_called(word, {group: catalog.options(conf, group) for group in catalog.groups(conf)})
    if not pairs:
        return ""
    groups = " and ".join(group for group, _ in pairs)
    return f"{groups}; write {' or '.join(f'{group}={name}' for group, name in pairs)}"


def pairs_called(word: str, options: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The groups among these with their `options` of this name; none where so many have it that it says nothing."""
    pairs = [
        (group, name)
        for group, names in options.items()
        for name in names
        if normalize_word(name) == normalize_word(word)
    ]
    return pairs if len(pairs) <= _MOST_GROUPS else []
