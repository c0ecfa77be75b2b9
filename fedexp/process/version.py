"""The version of the package: `pip`, `fedexp --version` and every summary.json read it here."""

__version__ = "0.1.0"
