"""What runtimes of the older generation ask for: the operational context, served from today's index (seed 002)."""
