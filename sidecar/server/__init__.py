"""How one talks to the daemon."""
