"""Verdicts written in the formats of other programs; `resources.corpora` reads them."""
