"""HTML of what notebooks show: programs, patterns, reports on gradients."""
