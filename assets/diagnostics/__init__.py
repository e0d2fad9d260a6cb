"""Assets of diagnostics: judges, influence, missing verdicts."""
