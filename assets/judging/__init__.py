"""Assets that ask judges, within a budget, and score their verdicts."""
