"""Judges of every kind, asked through one buyer.

catalog     a judge's definition -> a simulated, live, batch or managed judge, in one form
annotation  battles -> the form's presentations -> buying -> readings -> the form's table
buying      answers from the store; the missing ones from the judge, within a budget
judge_plan  calls, tokens and price, before anything is asked

forms/      what is shown, how an answer is read, and the odds in its tokens (evidence)
simulated/  computed answers
live/       judge -> asking -> connection; probe (abilities), replies, troubles (retries)
batch/      judge -> provider (files, requests), records (what was submitted)
managed/    judge and its server -> guard, around a live judge
"""
