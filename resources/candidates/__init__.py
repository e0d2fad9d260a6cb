"""Candidates: files of a new model's answers, read and checked row by row."""
