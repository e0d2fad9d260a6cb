"""Verdict forms: the rubric, one score, or a choice; each with its question and its reading."""
