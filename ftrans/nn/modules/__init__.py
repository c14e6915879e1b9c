"""Modules: objects of cells and forward code, the graph of them, and calls with other arrays in their cells."""
