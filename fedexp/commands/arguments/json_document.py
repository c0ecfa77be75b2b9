"""`--json`: stdout holds one JSON document and nothing else, what people read goes to stderr. `-q` prints nothing."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from fedexp.commands.arguments.parsing import Parser
from fedexp.core.errors import ConfigError, RunError
from fedexp.core.nested import json_text
from fedexp.files.url_credentials import without_password
from fedexp.process.exits import CommandExit
from fedexp.process.torchrun import rank

_PRINTED: list[int] = []  # documents of the command at work


def add_json_flag(parser: Parser) -> None:
    """Declares --json."""
    help_text = "one JSON document on stdout, and what people read on stderr; docs/json.md tells its keys"
    parser.add_flag(help_text, "--json", action="store_true")


def add_quiet_flag(parser: Parser) -> None:
    """Declares --quiet."""
    parser.add_flag("print nothing but errors", "-q", "--quiet", action="store_true")


@contextmanager
def json_document(requested: bool) -> Iterator[dict[str, Any]]:
    """Yields a mapping to fill and prints it in the end, if asked to; an empty one prints nothing.

    What was filled in before the command stopped is printed with its `error`, and the error goes on.
    """
    content: dict[str, Any] = {}
    if not requested:
        yield content
        return
    try:
        with redirect_stdout(sys.stderr):
            yield content
    except CommandExit as stop:
        if content:
            _print_document(content | {"error": stop.message})
        raise
    if content:
        _print_document(content)


def _print_document(content: Mapping[str, Any]) -> None:
    _PRINTED.append(1)
    print_whole(json_text(content))


@contextmanager
def error_document(requested: bool) -> Iterator[None]:
    """Prints `{"error": ...}` if the block raises before it has printed a document, if asked to; the error goes on."""
    _PRINTED.clear()
    try:
        yield
    except (ConfigError, RunError, CommandExit, OSError) as error:
        if requested and not _PRINTED and not rank():
            with suppress(OSError):  # where stdout has no room stderr says so
                print_whole(json_text({"error": without_password(str(error))}))
        raise


def print_whole(text: str) -> None:
    """Prints a text at once; raises an OSError that names stdout where there is no room for it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "stdout") from error


@contextmanager
def silence_stdout(requested: bool) -> Iterator[None]:
    """Discards what is printed, if asked to."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere if requested else sys.stdout):
        yield
