"""Assets of intervals: conformal thresholds, the leaderboard, and pooled judges."""
