"""Mixed precision: products in narrow types, and losses scaled for them."""
