"""Papers behind the methods: their tables are made again beside the printed values."""
