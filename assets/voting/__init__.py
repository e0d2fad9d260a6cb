"""People's own votes on the battles of a corpus, as files that a voting page saved."""
