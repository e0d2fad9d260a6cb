"""Score distributions, aggregation of two orders, and consistency of a judge."""
