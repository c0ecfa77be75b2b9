"""What two runs of one experiment share to the byte: all but their timings."""

from pathlib import Path

import pandas as pd

from fedexp.run.tables import TIMINGS


def kept_bytes(run: Path) -> str:
    """metrics.csv without its timing columns, as text that shows every digit."""
    table = pd.read_csv(run / "metrics.csv", dtype=str, keep_default_na=False)
    return table.drop(columns=list(TIMINGS), errors="ignore").to_csv(index=False)
