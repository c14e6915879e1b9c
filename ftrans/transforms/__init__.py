"""Program -> program: differentiate, split, transpose, batch, simplify.  They compose in any order."""
