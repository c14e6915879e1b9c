"""Entries of Jacobians and Hessians by elimination on the graph of a program."""
