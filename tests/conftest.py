"""What holds for all tests: JAX runs on the CPU, and compiles fast.

Results do not depend on the machine then.  Most compiled programs of the tests run once, on a few numbers, so what
LLVM could do for their speed takes longer than it saves.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
