"""Is the house in order?"""
