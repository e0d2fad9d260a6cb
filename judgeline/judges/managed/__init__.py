"""Judges on a vLLM server that is started for them and stopped after them."""
