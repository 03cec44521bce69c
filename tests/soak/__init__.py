"""Hours of ordinary work: does anything grow that should not?"""
