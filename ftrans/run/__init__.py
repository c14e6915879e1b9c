"""How programs run on NumPy: as straight-line Python, with memory used again, and what they cost."""
