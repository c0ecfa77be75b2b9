import pytest

from fedexp.report.draw.markdown import Grid, escape_around_code

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
        "% \\usepackage{booktabs}\n"
        "\\begin{tabular}{lr}\n"
        "\\toprule\n"
        "method & a\\_b \\\\\n"
        "\\midrule\n"
        "x\\textbar{}y, n=5\\% & 1 $\\pm$ 2 \\\\\n"
        "{[}z{]} & - \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_csv():
    assert Grid(("method", "a,b"), [('say "x"', "1 ± 2")]).csv() == 'method,"a,b"\n"say ""x""",1 ± 2\n'


def test_latex_writes_a_minus_before_a_number_and_between_words():
    grid = Grid(("method", "A - B"), [("seed=-1, 2026-01", "-0.1 to -.5"), ("a-b", "(-3)"), ("-", "- (0/2)")])
    body = grid.latex().splitlines()
    assert body[3] == "method & A $-$ B \\\\"
    assert body[5:8] == ["seed=-1, 2026-01 & $-$0.1 to $-$.5 \\\\", "a-b & ($-$3) \\\\", "- & - (0/2) \\\\"]


def test_latex_makes_no_dash_of_two_hyphens_and_takes_no_star_for_a_command():
    body = Grid(("method", "a"), [("a--b---c", "1"), ("*star", "--2")]).latex().splitlines()[5:7]
    assert body == ["a-{}-b-{}-{}-c & 1 \\\\", "{*}star & -{}-2 \\\\"]


def test_plain():
    assert GRID.aligned_text() == "method       a_b\nx|y, n=5%  1 ± 2\n[z]            -\n"


def test_control_characters_of_a_stranger_are_written_out():
    grid = Grid(("method", "a"), [("x\x1b[2J", "\r\x9b1")])
    assert grid.aligned_text().splitlines()[1] == "x\\x1b[2J  \\x0d\\x9b1"
    assert grid.markdown().splitlines()[2] == "| x\\x1b\\[2J | \\x0d\\x9b1 |"


def test_what_does_not_fit_is_named():
    wide = Grid(("method", "a", "b", "c"), [("random", "1.0", "2.0", "3.0"), ("x", "1", "2", "3")])
    assert wide.fit_width(None, "ask") == wide.markdown()
    assert wide.fit_width(28, "ask") == wide.fit_width(99, "ask") == wide.markdown()  # just as wide
    told = wide.fit_width(27, "--wide shows it").splitlines()
    assert told[0] == "| method |   a |   b |"
    assert told[-1] == "1 more column: c; --wide shows it"
    assert wide.fit_width(5, "see c.csv", Grid.aligned_text) == (
        "method    a\nrandom  1.0\nx         1\n2 more columns: b, c; see c.csv\n"
    )


def test_the_best_cells_are_bold_on_pages_but_not_in_a_terminal():
    grid = Grid(("method", "a"), [("x", "0.5"), ("y", "0.7")], bold=frozenset({(1, 1)}))
    assert grid.markdown().splitlines()[3] == "| y      | **0.7** |"
    assert "y & \\textbf{0.7} \\\\" in grid.latex()
    assert "*" not in grid.fit_width(None, "")
    assert "*" not in grid.aligned_text()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a `b_*<c>[` d", "a `b_*<c>[` d"),
        ("<img src=x> `code` [a](b) *c*", "\\<img src=x> `code` \\[a](b) \\*c\\*"),
        ("``` <img> `", "\\`\\`\\` \\<img> \\`"),  # Markdown would see no code in it
        ("`` <b> `", "\\`\\` \\<b> \\`"),
        ("`a\n\n<b>` and\n# c", "`a  <b>` and # c"),
        ("`a` `b", "`a` \\`b"),
        ("", ""),
    ],
)
def test_what_stands_in_backticks_is_code(text, shown):
    assert escape_around_code(text) == shown
