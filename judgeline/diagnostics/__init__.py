"""Diagnostics of judges: position, length, missing verdicts, and influence."""
