"""Is it still quick? `python -m tests.bench` prints ratios measured in one run."""
