"""The wire, and nothing else: what may be asked, by whom, and what comes back."""
