"""Puts the pages of `scripts/studies` and `scripts/replays` into the documentation; `mkdocs.yml` names this hook.

In the repository a page of `docs` links to them by `../scripts/studies/...`, and they link to it by `../../docs/...`;
the site has neither folder.
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

SCRIPTS, ROOMS = Path(__file__).parent, ("studies", "replays")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds every page, picture and table of the studies and replays, but for folders of runs."""
    for path in sorted(path for room in ROOMS for path in (SCRIPTS / room).rglob("*")):
        if path.suffix in (".md", ".png", ".csv", ".tex") and "runs" not in path.parts:
            name = path.relative_to(SCRIPTS).as_posix()
            files.append(File(name, str(SCRIPTS), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Leads the links of a page to where the site has the studies and replays, which a search finds after the pages."""
    if page.file.src_uri.startswith(ROOMS):
        page.meta["search"] = {"boost": 0.0001}
        markdown = markdown.replace("../docs/", "")
    return markdown.replace("](../scripts/", "](")
