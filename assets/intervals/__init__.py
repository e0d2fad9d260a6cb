"""Assets of intervals: conformal thresholds and the leaderboard."""
