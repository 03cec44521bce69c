"""A session of the older generation, recorded as a conformance case and played on real daemons."""
