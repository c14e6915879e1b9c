"""Models on a mesh of devices."""
