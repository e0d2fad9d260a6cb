"""Corpora: where battles come from, and one reader for every published layout."""
