"""``python -m agentloom``: the command line."""

import sys

from agentloom.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
