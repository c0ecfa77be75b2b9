from fedexp.report.markup import Grid

GRID = Grid(("method", "a_b"), [("x|y, n=5%", "1 ± 2"), ("[z]", "-")])


def test_markdown():
    assert GRID.markdown() == (
        "| method     |   a_b |\n"
        "| ---------- | ----: |\n"
        "| x\\|y, n=5% | 1 ± 2 |\n"
        "| \\[z]       |     - |\n"
    )  # fmt: skip


def test_latex():
    assert GRID.latex() == (
        "\\begin{tabular}{lr}\n"
        "\\toprule\n"
        "method & a\\_b \\\\\n"
        "\\midrule\n"
        "x\\textbar{}y, n=5\\% & 1 $\\pm$ 2 \\\\\n"
        "{[}z{]} & - \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_plain():
    assert GRID.plain() == "method       a_b\nx|y, n=5%  1 ± 2\n[z]            -\n"
