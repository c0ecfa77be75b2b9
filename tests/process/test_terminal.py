import ast
import logging
from pathlib import Path

import pytest

import fedexp
from fedexp.process.terminal import EscapedFormatter, escape_controls, print_text

WRITERS = ("print", "sys.stdout.write", "sys.stdout.writelines")
PACKAGE = Path(fedexp.__file__).parent


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb\x9b", "a\\x0db\\x9b"),
        ("\u202etxt.exe\u2066", "\\u202etxt.exe\\u2066"),
        ("a\u2028b", "a\\u2028b"),
        ("a\tb\nKöln नमस्ते a\u200db", "a\tb\nKöln नमस्ते a\u200db"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str, capsys: pytest.CaptureFixture[str]):
    assert escape_controls(text) == shown
    print_text(text)
    assert capsys.readouterr().out == shown
    record = logging.LogRecord("a", logging.INFO, "", 0, "%s", (text,), None)
    assert EscapedFormatter("%(message)s").format(record) == shown


def test_nothing_is_printed_past_the_one_function():
    writers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in WRITERS
    }
    own_texts = "commands/arguments/json_document.py"  # of the program: help, and JSON, which escapes by itself
    assert writers - {own_texts} == {"process/terminal.py"}
