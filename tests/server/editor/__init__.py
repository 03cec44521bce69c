"""What editors show is what the workspace has, and no more than their role may see."""
