"""What turns leave behind: saved to a store and an index, found again, rated, and resumed elsewhere (seed 004)."""
