"""Reference-anchored Elo: gaps to one reference model, and how far they reach."""
