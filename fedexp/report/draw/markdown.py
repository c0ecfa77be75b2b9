"""A grid of texts as Markdown, as LaTeX (booktabs) and as plain text."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedexp.process.terminal import CONTROLS, escape_controls

_MARKDOWN = CONTROLS | str.maketrans({sign: f"\\{sign}" for sign in "\\|*`<["} | {"\n": " "})
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "[": "{[}", "]": "{]}"}
    | {"*": "{*}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "\n": " "}
)
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_IN_CODE = CONTROLS | {ord("\n"): " "}
_HYPHENS = re.compile(r"-(?=-)")  # LaTeX would make a dash of two
_MINUS = re.compile(r"(?<![^\s(])-(?=[\d.])|(?<=\S )-(?= \S)")  # before a number, or between two words


@dataclass(frozen=True)
class Grid:
    """Headings and rows of the same length; the first `texts` columns are set left, the others right.

    `bold` are cells, (row, column), that a page sets in bold, as the best of a column.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    bold: frozenset[tuple[int, int]] = frozenset()

    def markdown(self, *, padded: bool = True) -> str:
        """A table that also reads well where nobody renders it; not padded, a long one takes half as many bytes."""
        texts = self._cells(escape_markdown, "**{}**")
        widths = [max(3, *map(len, column)) if padded else 3 for column in zip(*texts, strict=True)]
        rule = ["-" * width if n < self.texts else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
        head, *body = [self._align(row, widths) for row in texts]
        return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *body))

    def fit_width(self, width: int | None, hint: str, form: "Callable[[Grid], str] | None" = None) -> str:
        """The table in a form (Markdown) at most so wide, without bold cells.

        The last columns give way, and the line below says so.

        `hint` says there what shows them. Columns of texts and one more stay in any case.
        """
        write, columns = form or Grid.markdown, len(self.headings)
        while (
            width is not None and columns > self.texts + 1 and _text_width(write(self._first_columns(columns))) > width
        ):
            columns -= 1
        left_out = self.headings[columns:]
        note = f"{len(left_out)} more column{'s' * (len(left_out) > 1)}: {', '.join(left_out)}; {hint}\n"
        return write(self._first_columns(columns)) + (note if left_out else "")

    def _first_columns(self, count: int) -> "Grid":
        return Grid(self.headings[:count], [row[:count] for row in self.rows], self.texts)

    def latex(self) -> str:
        r"""A tabular; its rules need `\usepackage{booktabs}`."""
        cells = self._cells(escape_latex, "\\textbf{{{}}}")
        head, *body = [" & ".join(row) for row in cells]
        columns = "l" * self.texts + "r" * (len(self.headings) - self.texts)
        lines = [
            "% \\usepackage{booktabs}",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            f"{head} \\\\",
            "\\midrule",
        ]
        return "\n".join([*lines, *(f"{row} \\\\" for row in body), "\\bottomrule", "\\end{tabular}", ""])

    def csv(self) -> str:
        """The texts as CSV."""
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([self.headings, *self.rows])
        return stream.getvalue()

    def aligned_text(self) -> str:
        """Aligned columns for a terminal."""
        texts = [[escape_controls(text) for text in row] for row in (self.headings, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        return "".join("  ".join(self._align(row, widths)).rstrip() + "\n" for row in texts)

    def _cells(self, escape: Callable[[str], str], bold: str) -> list[list[str]]:
        """The headings and rows escaped, with bold cells as a template says."""
        rows = [
            [
                bold.format(escape(text)) if (row, column) in self.bold else escape(text)
                for column, text in enumerate(cells)
            ]
            for row, cells in enumerate(self.rows)
        ]
        return [[escape(text) for text in self.headings], *rows]

    def _align(self, row: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            f"{text:<{width}}" if column < self.texts else f"{text:>{width}}"
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]


def escape_markdown(text: str) -> str:
    """A text that Markdown shows as it is."""
    return text.translate(_MARKDOWN)


def escape_latex(text: str) -> str:
    """A text that LaTeX shows as it is, in a cell of a table, with minus signs before numbers."""
    return _MINUS.sub("$-$", _HYPHENS.sub("-{}", text.translate(_LATEX)))


def escape_around_code(text: str) -> str:
    """A text that Markdown shows as it is, but that what stands in backticks is code."""
    around, code = _CODE.split(text)[::2], _CODE.findall(text)
    spans = [*(f"`{span.translate(_IN_CODE)}`" for span in code), ""]
    return "".join(escape_markdown(before) + span for before, span in zip(around, spans, strict=True))


def _text_width(text: str) -> int:
    return max(map(len, text.splitlines()))
