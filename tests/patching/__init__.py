"""A corpus of diffs as models write them, what each of them means, and how we and others fare with it."""
