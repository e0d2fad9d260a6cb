"""Configuration: corpora, judges and embeddings as entries of YAML files, checked."""
