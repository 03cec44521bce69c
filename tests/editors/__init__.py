"""Tests in real editors: each is started as a person would start it, and looked at from outside."""
