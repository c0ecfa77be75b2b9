"""A grid of texts as Markdown, as LaTeX (booktabs) and as plain text."""

from collections.abc import Sequence
from dataclasses import dataclass

_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\|*`<["} | {"\n": " "})
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "[": "{[}", "]": "{]}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "\n": " "}
)


@dataclass(frozen=True)
class Grid:
    """Headings and rows of the same length; the first `texts` columns are set left, the others right."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1

    def markdown(self) -> str:
        """A table that also reads well where nobody renders it."""
        texts = [[text.translate(_MARKDOWN) for text in row] for row in (self.headings, *self.rows)]
        widths = [max(3, *map(len, column)) for column in zip(*texts, strict=True)]
        rule = ["-" * width if n < self.texts else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
        head, *body = [self._aligned(row, widths) for row in texts]
        return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *body))

    def latex(self) -> str:
        """A tabular for the package booktabs."""
        head, *body = [" & ".join(text.translate(_LATEX) for text in row) for row in (self.headings, *self.rows)]
        columns = "l" * self.texts + "r" * (len(self.headings) - self.texts)
        lines = [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", f"{head} \\\\", "\\midrule"]
        return "\n".join([*lines, *(f"{row} \\\\" for row in body), "\\bottomrule", "\\end{tabular}", ""])

    def plain(self) -> str:
        """Aligned columns for a terminal."""
        texts = [self.headings, *self.rows]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        return "".join("  ".join(self._aligned(row, widths)).rstrip() + "\n" for row in texts)

    def _aligned(self, row: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            f"{text:<{width}}" if column < self.texts else f"{text:>{width}}"
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
