"""The Dagster instance: homes, storage, workers, web server. Dagster's internals are used here alone."""
