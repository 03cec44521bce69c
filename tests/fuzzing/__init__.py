"""Inputs that nobody thought of, led by what of the code they reach, and what must be true of all of them."""
