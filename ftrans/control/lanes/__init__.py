"""Programs that do the same for each of many lanes, and how they are compiled for a CPU."""
