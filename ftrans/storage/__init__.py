"""Programs outside of the process that made them: as source, as text, and by pickle."""
