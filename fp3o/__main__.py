"""Entry point of `python -m fp3o`, the command line."""

import sys

from fp3o.cli.main import main

sys.exit(main())
