"""The proof of the project; README.md says which folder answers which question."""
