"""Programs outside of the process that made them: as text, and by pickle."""
