"""Judges of every kind, asked through one buyer; no orchestrator.

ask         `judgeline.ask`: the battles of a notebook -> verdicts
definition  a judge as it is declared; decoding: how it draws its answers; options: the base
opening     a definition -> a live, batch or managed judge, in one form, with its prompt
annotation  battles -> the form's presentations -> buying -> readings -> the form's table
buying      answers from the store; the missing ones from the judge, within a budget
judge_plan  calls, tokens and price, before anything is asked

forms/      what is shown, how an answer is read, and the odds in its tokens (evidence)
prompts/    the texts of the forms
live/       judge -> asking -> connection -> client; probe (abilities), replies, troubles (retries)
batch/      judge -> provider (files, requests), records (what was submitted)
managed/    judge and its server -> guard, around a live judge
embeddings/ vectors of texts, bought and kept alike
store/      what was bought, by judge and identity of the call
"""
