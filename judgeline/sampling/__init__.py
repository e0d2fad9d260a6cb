"""Battles to judge: balanced samples, and the battles of a new model."""
