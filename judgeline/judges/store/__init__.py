"""Answers that judges gave, kept for good: each was paid for once and is never bought again."""
