"""What programs are made of: the primitives, in files by family, each with all of its rules in one class."""
