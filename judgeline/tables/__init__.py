"""Declared tables: columns, types, units, words and rules; no store and no test engine."""
