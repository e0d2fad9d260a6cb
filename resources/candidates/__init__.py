"""Candidates: files of a new model's answers, read, held against a corpus, and given battles."""
