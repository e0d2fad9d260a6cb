"""Tokens before anything is asked, against texts of known length."""

import json
from pathlib import Path

import pandas as pd
import pytest
from answering import annotate
from buyer_process import PROMPT, numbered, tiny_judge
from fault_server import USAGE, FaultServer, serving

from judgeline.judges.forms.form import Prompt
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.judge_plan import BYTES_PER_TOKEN, estimate_tokens
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.presentation import Presentation, present

BARE = Prompt("{delimiter} {instruction} {first_completion} {second_completion}", RUBRIC)
BESIDE = len(json.dumps(RUBRIC.response_format)) + 64  # the schema, and what a chat template adds
FENCES = 8 + 3 * (1 + 3 + 8 + 1 + 1 + 8 + 3)  # the mark alone, then around each text


def fields(**given: object) -> ServedFields:
    return ServedFields(**{"model": "tiny", **given})


def shown(*texts: str) -> Presentation:
    return Presentation("b", "AB", 0, *texts, "x", "y")


def test_prompts_are_their_bytes_where_nothing_better_is_known() -> None:
    needed = [shown("q" * 10, "é" * 20, "z" * 30), shown("", "", "1234")]
    estimate = estimate_tokens(fields(decoding={"max_tokens": 500}), BARE, needed)
    n_bytes = 2 * FENCES + (10 + 2 * 20 + 30) + 4
    assert estimate.prompt_tokens == round(n_bytes / BYTES_PER_TOKEN)
    assert estimate.most_prompt_tokens == n_bytes + 2 * BESIDE
    assert estimate.most_completion_tokens == 2 * 500
    assert estimate.completion_tokens == 2 * 110
    assert estimate.basis == "estimated at 4 bytes a token; 110 tokens an answer, a guess"


def test_free_answers_are_longer() -> None:
    free = estimate_tokens(fields(structured_output="off"), BARE, [shown("q", "a", "b")] * 3)
    assert free.completion_tokens == 3 * 400


def test_nothing_to_ask_takes_nothing() -> None:
    assert estimate_tokens(fields(), BARE, []) == (0, 0, 0, 0, "nothing to ask")


def test_the_most_counts_every_prompt_of_a_long_list() -> None:
    """Every second one is long: looking at some, evenly spaced, would miss them or see no other."""
    needed = [shown("q" * 5000 * (i % 2), "a", "b") for i in range(10_001)]
    estimate = estimate_tokens(fields(), BARE, needed)
    exact = sum(FENCES + 2 + 5000 * (i % 2) for i in range(10_001))
    assert estimate.most_prompt_tokens == exact + 10_001 * BESIDE
    assert estimate.prompt_tokens == round(exact / 4)
    assert estimate.completion_tokens == 110 * 10_001


def test_stored_answers_give_the_tokens_that_the_server_counts(tmp_path: Path) -> None:
    """The server counts the same for whatever it is shown: so must the estimate."""
    battles = numbered(100)
    with serving(FaultServer()) as server:
        verdicts = annotate(tiny_judge(server.url, tmp_path), battles, slug="j")
    calls = present(battles, 1)
    estimate = estimate_tokens(fields(), PROMPT, calls, (calls, verdicts))
    assert (estimate.prompt_tokens, estimate.completion_tokens) == (200 * USAGE[0], 200 * USAGE[1])
    assert estimate.basis == "estimated from 200 answers of this judge"
    twice = battles.assign(instruction=battles["instruction"] + "x" * 3000)
    longer = estimate_tokens(fields(), PROMPT, present(twice, 1), (calls, verdicts))
    n_bytes = estimate.most_prompt_tokens - 200 * BESIDE
    assert longer.prompt_tokens == pytest.approx(
        200 * USAGE[0] * (n_bytes + 200 * 3000) / n_bytes, rel=1e-4
    )
    none = estimate_tokens(fields(), PROMPT, calls, ([], verdicts.head(0)))
    assert none.basis.startswith("estimated at 4 bytes")


def test_answers_whose_tokens_nobody_counted_say_nothing() -> None:
    one, other = shown("q", "a", "b"), shown("qq", "aa", "bb")
    silent = pd.DataFrame({"prompt_tokens": [0], "completion_tokens": [0]})
    assert estimate_tokens(fields(), BARE, [one], ([one], silent)) == estimate_tokens(
        fields(), BARE, [one]
    )
    half = pd.DataFrame({"prompt_tokens": [0, 70], "completion_tokens": [0, 30]})
    estimate = estimate_tokens(fields(), BARE, [other], ([one, other], half))
    assert (estimate.prompt_tokens, estimate.completion_tokens) == (70, 30)
