"""Intervals of ratings: conformal thresholds, coverage, and the board."""
