"""Special functions: primitives with the meaning of the ufuncs of `scipy.special`, in files by family."""
