"""Simulated judges: they read the arena's answers and err by known rules."""
