"""Checkpointing: what reverse mode keeps, and what it recomputes."""
