"""A section of a report: its pictures and tables, whatever the page is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedexp.report.draw import style
from fedexp.report.draw.markdown import Grid
from fedexp.report.draw.picture_data import PictureData
from fedexp.report.read.methods import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, kw_only=True)
class Picture:
    """A figure, the name of its file without an ending, and the methods whose artists bear their `style.gid`.

    `data` has the numbers behind it. Pictures with a `tab` are shown in turn, those of one tab together. Without
    `legend` the picture names the methods.
    """

    name: str
    title: str
    figure: "Figure"
    data: PictureData
    caption: str = ""
    methods: Sequence[Method] = ()
    legend: bool = True
    tab: str = ""

    def save(self, folder: Path, endings: Sequence[str] = ("png",)) -> list[Path]:
        """Writes the picture with its legend, as a file a kind."""
        if self.methods and self.legend:
            style.add_legend(self.figure, self.methods)
        paths = [folder / f"{self.name}.{ending}" for ending in endings]
        for path in paths:
            style.save(path, self.figure)
        return paths


@dataclass(frozen=True, eq=False, kw_only=True)
class Section:
    """A section: its name in links, heading, introductory note, pictures, and tables with captions.

    With `as_files` the first table is a file of its own beside a Markdown page, too.
    """

    name: str
    title: str
    note: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[tuple[str, Grid]] = ()
    as_files: bool = False


def section(
    name: str,
    title: str,
    note: str,
    pictures: Sequence[Picture | None] = (),
    tables: Sequence[tuple[str, Grid]] = (),
) -> Section | None:
    """Builds a section of the pictures and tables that exist; None if there are none."""
    drawn = [picture for picture in pictures if picture is not None]
    return Section(name=name, title=title, note=note, pictures=drawn, tables=tables) if drawn or tables else None
