"""Primitives that hold programs: their rules transform the programs that they hold."""
