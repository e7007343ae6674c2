"""How the tests run: shapes checked at every call, small programs compiled quickly."""

import os

# Tiny programs: compiling fast matters more than running fast, and one thread a worker is enough.
# Set before JAX is imported.
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
    ]
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from jaxtyping import install_import_hook  # noqa: E402

# Every annotated shape and type of the package is checked while it is traced under test.
install_import_hook("fp3o", "beartype.beartype")
