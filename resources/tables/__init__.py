"""Tables of the lineage: where they are stored, their columns, and their expectations."""
