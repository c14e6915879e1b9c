"""What holds for all tests: JAX runs on the CPU, so that results do not depend on the machine."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
