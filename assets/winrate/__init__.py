"""Assets of win rates."""
