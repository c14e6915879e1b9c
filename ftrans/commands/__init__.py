"""The commands of `python -m ftrans`: launching processes, the report on an installation, programs of functions."""
