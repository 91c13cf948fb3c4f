"""``python -m spmd`` is the command ``spmd``."""

import sys

from spmd.cli import main

if __name__ == "__main__":
    sys.exit(main())
