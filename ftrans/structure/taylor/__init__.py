"""Taylor series: derivatives of any order along lines and curves."""
