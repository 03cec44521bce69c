"""Whole conversations, as an agent loop drives them."""
