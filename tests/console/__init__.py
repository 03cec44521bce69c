"""What people and shell scripts see."""
