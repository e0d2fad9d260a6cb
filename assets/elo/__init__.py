"""Assets of ratings: slopes, held-out ratings, and every scoring method."""
