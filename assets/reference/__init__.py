"""Assets of reference-anchored Elo and of other rating systems."""
