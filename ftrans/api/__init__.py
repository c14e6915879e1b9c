"""What users call: the transformations of functions, a few lines each over the transformations of programs."""
