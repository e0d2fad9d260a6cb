"""Verdicts written for another program, which `resources.corpora` reads again."""
