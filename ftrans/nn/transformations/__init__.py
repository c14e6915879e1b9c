"""Transformations of functions of modules: gradients, `vmap`, `jit` and checkpoints."""
