"""What real programs do to OUT_DIR, and whether the daemon saw all of it (spec section 5)."""
