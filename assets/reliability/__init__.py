"""Assets of reliability: panel, gate, and drift."""
