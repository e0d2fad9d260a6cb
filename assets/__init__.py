"""The lineage, one module per stage: names, fetches, delegates, reports."""
