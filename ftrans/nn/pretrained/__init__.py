"""Pretrained models: weights of models that were written for other libraries, and tokens that decoder models add."""
