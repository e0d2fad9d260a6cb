"""Quantitative judges: models that learn human scores from a judge's rationale."""
