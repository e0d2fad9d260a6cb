"""Assets that compare judges, and the report."""
