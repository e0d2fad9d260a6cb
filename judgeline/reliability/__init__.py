"""Reliability of judges: agreement, the gate, and drift between two epochs."""
