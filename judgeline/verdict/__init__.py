"""Verdicts: what an answer says, its outcome, and the identity of a call."""
