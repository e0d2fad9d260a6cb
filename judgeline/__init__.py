"""Judge verdicts in, ratings on the human Elo scale with honest intervals out."""
