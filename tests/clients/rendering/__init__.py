"""Tests of the rendering tool. Its pages are drawn by a real browser and looked at pixel by pixel."""
