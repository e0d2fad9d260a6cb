"""Assets of quantitative judges and their embeddings."""
