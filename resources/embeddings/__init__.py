"""Vectors of texts: what makes them, and where those that were bought are kept."""
