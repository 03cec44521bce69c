"""The artifact sidecar: one daemon per workspace that finds, numbers and serves what an agent made."""

__version__ = "0.1.0"
