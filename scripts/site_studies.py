"""Puts the pages of `scripts/studies` and `scripts/replays` into the documentation; `mkdocs.yml` names this hook."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SCRIPTS = Path(__file__).parent


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds every page, picture and table of the studies and replays, but for folders of runs."""
    replays = SCRIPTS / "replays"
    for path in sorted([*(SCRIPTS / "studies").rglob("*"), *replays.glob("*"), *replays.glob("*/*")]):
        if path.suffix in (".md", ".png", ".csv", ".tex"):
            name = path.relative_to(SCRIPTS).as_posix()
            files.append(File(name, str(SCRIPTS), config.site_dir, config.use_directory_urls))
    return files
