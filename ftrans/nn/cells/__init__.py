"""Cells: the places in modules that hold arrays, and what code that computes with a cell gets."""
