"""Assets of a corpus: raw battles, clean battles, and the sample."""
