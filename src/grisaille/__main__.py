"""``python -m grisaille`` is the command line."""

from __future__ import annotations

import sys

from grisaille.cli import main

if __name__ == "__main__":
    sys.exit(main())
