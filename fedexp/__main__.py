"""`python -m fedexp`."""

import sys

from fedexp.cli import main

if __name__ == "__main__":
    sys.exit(main())
