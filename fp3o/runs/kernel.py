"""Whether the program runs in the kernel of a Jupyter notebook, and its display there."""

import sys
from importlib.util import find_spec
from typing import Any

from fp3o.errors import MissingExtraError


def in_notebook() -> bool:
    """Whether this is the kernel of a Jupyter notebook."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive else None
    return shell is not None and "IPKernelApp" in shell.config


def notebook_display() -> Any:
    """The display of progress in a notebook."""
    if find_spec("IPython") is None:
        raise MissingExtraError("IPython", "notebook")
    from fp3o.runs.notebook import NotebookDisplay  # with matplotlib, which others do without

    return NotebookDisplay()
