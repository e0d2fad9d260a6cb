"""Assembly and the front door: definitions, jobs, runs and the command line."""
