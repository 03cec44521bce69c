"""How the long run finds the figures of reliability: a function for each, from a `Run` to an `Outcome`."""
