"""Where the configuration lies: inside the installed package, or beside it in a checkout."""

from pathlib import Path


def conf_dir() -> Path:
    """The folder of `config.yaml` and the config groups."""
    package = Path(__file__).parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"
