"""Ratings on the Elo scale: strengths, slopes, and the models left out one at a time."""
