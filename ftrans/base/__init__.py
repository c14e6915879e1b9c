"""What ftrans needs of Python and NumPy: the lines of users, keys, error modes, interrupts; it knows no programs."""
