"""Is the talk right?"""
