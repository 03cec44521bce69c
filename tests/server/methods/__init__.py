"""Handlers, each asked as a client would ask it."""
