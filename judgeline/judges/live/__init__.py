"""Judges behind an HTTP endpoint that speaks the OpenAI protocol: prompt, client, failures."""
