"""The rules. No I/O, no clock, no threads."""
