"""Addresses are shown without who asks; the whole one stays with the process."""

import pytest

from fedexp.files.url_credentials import (
    ADDRESS_VARIABLE,
    has_ambiguous_at,
    keep_in_environment,
    with_password,
    without_password,
    without_passwords,
)

SAID = [
    ("http://me:secret@host:5000/api", "http://host:5000/api"),
    ("postgresql+psycopg://me:se@cret@host/db", "postgresql+psycopg://host/db"),
    ("https://token@host", "https://host"),
    ("tracker.uri='http://me:secret@host',seed=1", "tracker.uri='http://host',seed=1"),
    ("no answer of http://me:secret@host:5000/api, said a@b", "no answer of http://host:5000/api, said a@b"),
    ("sqlite:////home/me@work/mlflow.db", "sqlite:////home/me@work/mlflow.db"),
    (r"tracker.uri=http\://me\:secret@host\:5000", r"tracker.uri=http\://host\:5000"),
    ("http://host:5000", "http://host:5000"),
    ("me@host.org", "me@host.org"),
]


@pytest.mark.parametrize(("text", "shown"), SAID)
def test_who_asks_is_not_said(text: str, shown: str):
    assert without_password(text) == shown
    assert without_passwords({"a": [{"b": text}], "c": 1}) == {"a": [{"b": shown}], "c": 1}


def test_an_address_is_whole_where_it_was_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(ADDRESS_VARIABLE, "http://other")
    keep_in_environment("http://host")
    assert with_password("http://host") == "http://host"
    keep_in_environment("http://me:secret@host")
    assert with_password("http://host") == "http://me:secret@host"
    assert with_password("http://elsewhere") == "http://elsewhere"


@pytest.mark.parametrize(
    ("address", "is_ambiguous"),
    [
        ("http://me:ab/secret@host", True),
        ("HTTPS://me:s3cr@t/x@host:5000/api", True),
        ("postgresql+psycopg://me:a/b@host/db", True),
        ("http://me:se%2Fcret@host:5000/api", False),
        ("http://host:5000/api", False),
        ("sqlite:////home/me@work/mlflow.db", False),
        ("file:///home/me@work", False),
    ],
)
def test_a_slash_in_a_password_is_seen(address: str, is_ambiguous: bool):
    assert has_ambiguous_at(address) == is_ambiguous
