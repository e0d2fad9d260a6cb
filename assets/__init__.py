"""The Dagster assets, a folder per system: each reads its tables, calls the core, and reports."""
