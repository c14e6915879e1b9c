"""Entries from products that serve several columns or rows: colourings, and what is read from the products."""
