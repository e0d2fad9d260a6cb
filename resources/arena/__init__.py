"""The built-in arena: a simulation whose prompts, texts, votes and truth are all known."""
