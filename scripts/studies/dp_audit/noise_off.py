"""What the audit says of a DP-SGD that forgot its noise while the ledger believes in it.

python scripts/studies/dp_audit/noise_off.py [WORDS OF fedexp run]
"""

import sys

from fedexp import cli
from fedexp.training.per_example import clipped_sum


def forget(self: clipped_sum.Noise, active: object) -> None:
    """Draws nothing: the noise stays zero."""


if __name__ == "__main__":
    clipped_sum.Noise.draw = forget
    sys.exit(cli.main(["run", "experiment=dp_audit", *sys.argv[1:]]))
