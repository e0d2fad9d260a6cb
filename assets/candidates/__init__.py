"""Assets of candidates: their battles, verdicts, placing, predictions, and controls."""
