"""The command line: `python -m ftrans launch`."""

import sys

from .launching import main

if __name__ == "__main__":
    sys.exit(main())
