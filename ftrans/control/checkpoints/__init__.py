"""What a gradient computes again instead of keeping it."""
