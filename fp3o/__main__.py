"""`python -m fp3o` is the command line."""

import sys

from fp3o.cli.main import main

sys.exit(main())
