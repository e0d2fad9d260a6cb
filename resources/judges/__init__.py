"""Judges: their definitions, how they are asked, and the simulated ones that are built in."""
