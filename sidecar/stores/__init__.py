"""Where bytes live: OUT_DIR, the journal, kept versions."""
