"""`fedexp resume DIR`: goes on with whatever was begun in the folder."""

from pathlib import Path

from fedexp.commands.trusting import split
from fedexp.core.errors import ConfigError
from fedexp.core.own_files import refuse_strange
from fedexp.run import folders


def act(words: list[str]) -> int:
    """Continues a run, a sweep or a search."""
    if not words or words[0].startswith("-"):
        raise ConfigError("resume needs the folder of a run, a sweep or a search, e.g. fedexp resume outputs/latest")
    folder = Path(words[0])
    trust, more = split(words[1:])
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; resume needs that of a run, e.g. fedexp resume outputs/latest")
    refuse_strange(folder, writing=True)
    if folders.is_search(folder):
        from fedexp.commands import search

        return search.resume(folder, more, trust)
    from fedexp.commands.launch import resume

    return resume(folder, more, trust)
