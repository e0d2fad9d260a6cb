"""The Dagster instance: homes, storage, workers, web server. Internals of Dagster."""
