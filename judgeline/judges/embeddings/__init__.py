"""Vectors of texts: embedders, and the store of bought vectors."""
