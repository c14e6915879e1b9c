"""Functions of other libraries with ftrans inside, and functions of other libraries as parts of programs."""
