"""Assets of reference-anchored Elo."""
