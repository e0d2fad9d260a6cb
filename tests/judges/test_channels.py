"""Every behaviour of a served judge through each channel: asked live, or in batches."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pandas as pd
import pytest
from answering import annotate, answered
from batch_server import BatchServer
from buyer_process import numbered, store_in
from channels import (
    CHANNELS,
    NOWHERE,
    SHOWN,
    TEMPLATE,
    always,
    batch,
    live,
    on_question,
    presentation,
    some,
)
from fault_server import (
    FINAL,
    KEY,
    UNREADABLE,
    USAGE,
    Body,
    FaultServer,
    completion,
    error,
    judged,
    scores_of,
    serving,
    stated,
)
from starlette.responses import JSONResponse, Response

from assets.judging import assets as judging
from judgeline.judges.budget import Budget
from judgeline.judges.buying import RETRIED, Buyer
from judgeline.judges.forms.form import Prompt, Reading
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.judge import call_identity, judge_key
from judgeline.judges.live.endpoint import Endpoint, EndpointError, OutOfReachError
from judgeline.judges.live.fields import DEFAULT_TEMPLATE, ServedFields
from judgeline.judges.live.judge import ServedJudge, Site
from judgeline.judges.presentation import Answer, Presentation
from judgeline.paths import ROOT
from judgeline.tables.corpus import SCORE_COLUMNS, VERDICT_DTYPES
from judgeline.tables.judging import VERDICTS
from judgeline.verdict.identity import identity_hash
from judgeline.verdict.rubric import parse_answer
from resources.config.corpora import load_corpora
from resources.config.judges import load_judges
from resources.opening import open_judge
from resources.tables.expectations import result_of

pytestmark = pytest.mark.slow

BATTLES = numbered(2)


def catalog_of(**fields: Any) -> Any:
    return SimpleNamespace(judge=lambda slug: ServedFields(**fields))


ANY = catalog_of(model="tiny", expect_model="any")
SAID = ["reply_model", "system_fingerprint", "said"]


@pytest.fixture(params=CHANNELS)
def ask(request: pytest.FixtureRequest) -> Callable[..., ServedJudge]:
    opened: Callable[..., ServedJudge] = CHANNELS[request.param]
    return opened


def replying(change: Callable[[Body], Any]) -> BatchServer:
    """A server whose good replies are changed."""

    def reply(server: FaultServer, body: Body) -> Response:
        text = json.dumps(change(completion(body, judged(body))))
        return Response(text, media_type="application/json")

    return BatchServer(always("changed"), extra={"changed": reply})


def failing(reply: Callable[[FaultServer, Body], Any]) -> BatchServer:
    return BatchServer(always("odd"), extra={"odd": reply})


def with_choice(**parts: Any) -> Callable[[Body], Body]:
    return lambda whole: {**whole, "choices": [{**whole["choices"][0], **parts}]}


def stating(**parts: Any) -> Callable[[Body], Body]:
    return lambda whole: {**whole, **parts}


def one(server: BatchServer, judge: Callable[..., Any], folder: Path, **fields: Any) -> Answer:
    with serving(server):
        (answer,) = answered(judge(server, folder, **fields), some(1))
    return answer


# answers


def test_answers_belong_to_their_presentations_and_read_as_scores(ask, tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        given = answered(ask(server, tmp_path), SHOWN)
    for shown, answer in zip(SHOWN, given, strict=True):
        texts = shown.instruction, shown.first_completion, shown.second_completion
        expected = scores_of(texts)["response_1"].values()
        assert answer.failure is None
        assert parse_answer(answer.text or "").first == tuple(expected)
        assert (answer.prompt_tokens, answer.completion_tokens) == USAGE
    assert server.keys == {f"Bearer {KEY}"}


@pytest.mark.parametrize("schema", ["bound", "ignored"])
@pytest.mark.parametrize("fields", [{}, {"log_probabilities": "on"}])
def test_all_channels_give_the_same_verdicts_under_one_identity(schema, fields, tmp_path):
    with serving(BatchServer(json_schema=schema)) as server:
        in_batches, asked_live = batch(server, tmp_path, **fields), live(server, tmp_path, **fields)
        assert answered(asked_live, SHOWN) == answered(in_batches, SHOWN)
        assert identity_hash(in_batches.identity) == identity_hash(asked_live.identity)
        assert set(server.submitted) == {call_identity(asked_live, shown) for shown in SHOWN}
        sent = [json.loads(line)["body"] for line in server.uploads[0].splitlines()]
        assert [set(body) for body in sent] == [set(body) for body in server.presentations[:30]]
        assert all((line["method"], line["url"]) == ("POST", "/v1/chat/completions")
                   for line in map(json.loads, server.uploads[0].splitlines()))  # fmt: skip


def test_nothing_to_ask_asks_nothing_and_what_is_stored_needs_no_endpoint(ask, tmp_path) -> None:
    asked = ask(NOWHERE, tmp_path, structured_output="off")
    assert len(identity_hash(asked.identity)) == 64
    assert answered(asked, []) == []


def test_texts_of_all_kinds_arrive(ask, tmp_path: Path) -> None:
    odd = ["line\u2028separator", "next\x85line", "nul\0", "\ud800 half", 'quote" {}', "日本語\r\n"]
    shown = [
        Presentation("b", "AB", 0, f"{text} {i}", text, text * 2, "x", "y")
        for i, text in enumerate(odd)
    ]
    with serving(BatchServer()) as server:
        given = answered(ask(server, tmp_path), shown)
    readable = [text.encode("utf-8", "replace").decode() for text in odd]
    for i, (text, answer) in enumerate(zip(readable, given, strict=True)):
        expected = scores_of((f"{text} {i}", text, text * 2))["response_1"]
        assert parse_answer(answer.text or "").first == tuple(expected.values())
    for upload in server.uploads:
        assert not {"\u2028", "\x85"} & set(upload.decode())


# failures


@pytest.mark.parametrize("name", FINAL)
def test_a_failure_has_its_class_and_is_not_repeated(ask, name: str, tmp_path: Path) -> None:
    server = BatchServer(always(name))
    answer = one(server, ask, tmp_path, decoding={"max_tokens": 4096})  # no bound to be lifted
    assert answer.failure == FINAL[name][0]
    assert len(server.presentations) + server.submitted.total() == 1


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_answer_is_a_parse_error(ask, name: str, tmp_path: Path) -> None:
    server = BatchServer(always(name))
    answer = one(server, ask, tmp_path)
    assert answer.failure == "parse_error"
    repairs = 1 if ask is live else 0  # a batch asks no second question
    assert len(server.presentations) + server.submitted.total() == 1 + repairs


def called(finish: str) -> Callable[[Body], Body]:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return with_choice(message=message, finish_reason=finish)


def without_finish(whole: Body) -> Body:
    choice = {k: v for k, v in whole["choices"][0].items() if k != "finish_reason"}
    return {**whole, "choices": [choice]}


ENDS: dict[str, tuple[Callable[[Body], Any], str | None]] = {
    "stop": (with_choice(finish_reason="stop"), None),
    "null": (with_choice(finish_reason=None), None),
    "eos": (with_choice(finish_reason="eos_token"), None),
    "absent": (without_finish, "truncated"),
    "list": (with_choice(finish_reason=["stop"]), "truncated"),
    "error": (with_choice(finish_reason="error"), "transport"),
    "tools": (called("tool_calls"), "tool_call"),
    "function": (called("function_call"), "tool_call"),
    "tool and stop": (called("stop"), "tool_call"),
    "message is text": (with_choice(message="hello"), "unreadable_reply"),
    "message is a list": (with_choice(message=[1]), "unreadable_reply"),
    "choice is text": (stating(choices=["x"]), "unreadable_reply"),
    "choices are an object": (stating(choices={"0": 1}), "unreadable_reply"),
    "no choices": (stating(choices=[]), "unreadable_reply"),
    "list of numbers": (lambda whole: [1], "unreadable_reply"),
}


@pytest.mark.parametrize("name", ENDS)
def test_only_an_answer_that_ended_by_itself_counts(ask, name: str, tmp_path: Path) -> None:
    change, failure = ENDS[name]
    answer = one(replying(change), ask, tmp_path)
    assert answer.failure == failure
    if failure == "tool_call":
        assert answer.prompt_tokens == USAGE[0]  # it was paid for
        assert "tool" in str(answer.said)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 12, "completion_tokens": 3}, (12, 3)),
        ({"prompt_tokens": 10**30, "completion_tokens": 3}, (0, 3)),
        ({"prompt_tokens": -(10**6), "completion_tokens": 3}, (0, 3)),
        ({"prompt_tokens": "12", "completion_tokens": 12.5}, (0, 0)),
        ({"prompt_tokens": {"a": 1}, "completion_tokens": True}, (0, 0)),
        (None, (0, 0)),
        ([1], (0, 0)),
        ("many", (0, 0)),
    ],
)
def test_tokens_are_counts_or_unknown(usage: Any, tokens: tuple[int, int], tmp_path: Path) -> None:
    price = {"prompt": 1, "completion": 2}
    answer = one(replying(stating(usage=usage)), live, tmp_path, price_per_million=price)
    assert answer.failure is None
    assert (answer.prompt_tokens, answer.completion_tokens) == tokens


@pytest.mark.parametrize(
    ("logs", "kept"),
    [
        ({"content": [{"token": "7", "logprob": -0.2}]}, [["7", -0.2, []]]),
        ({"content": [{"token": "7", "logprob": -0.2, "top_logprobs": None}]}, [["7", -0.2, []]]),
        ({"content": [{"token": 7, "logprob": -0.2}]}, None),
        ({"content": [{"token": "7", "logprob": "x"}]}, None),
        ({"content": [None]}, None),
        ({"content": "abc"}, None),
        ({"tokens": ["a"], "token_logprobs": [-1]}, None),
        ([1], None),
    ],
)
def test_log_probabilities_in_another_form_cost_no_answer(logs: Any, kept: Any, tmp_path) -> None:
    answer = one(replying(with_choice(logprobs=logs)), live, tmp_path, log_probabilities="on")
    assert answer.failure is None
    found = answer.log_probabilities
    assert (None if found is None else json.loads(found)) == kept


def test_log_probabilities_come_along_where_asked(ask, tmp_path: Path) -> None:
    assert one(BatchServer(), ask, tmp_path).log_probabilities is None
    rich = one(BatchServer(), ask, tmp_path / "rich", log_probabilities="on")
    assert json.loads(rich.log_probabilities or "") == [["7", -0.25, [["7", -0.25]]]]


def quoting(status: int, **parts: Any) -> BatchServer:
    def reply(server: FaultServer, body: Body) -> Response:
        message = "failed on input " + body["messages"][0]["content"]
        return JSONResponse({"error": {"message": message, **parts}}, status)

    return failing(reply)


@pytest.mark.parametrize(
    ("status", "words", "code", "failure"),
    [
        (400, "an essay on the maximum context length", None, "rejected"),
        (422, "the content policy, and what is flagged by moderation", None, "rejected"),
        (400, "my code prints: output limit was reached", None, "rejected"),
        (500, "my code raises insufficient_quota", None, "transport"),
        (400, "the context length", "context_length_exceeded", "context_overflow"),
    ],
)
def test_what_a_server_quotes_is_not_what_it_says(ask, status, words, code, failure, tmp_path):
    shown = Presentation("b", "AB", 0, "q", words, "other", "x", "y")
    with serving(quoting(status, code=code)) as server:
        (answer,) = answered(ask(server, tmp_path), [shown])
    assert answer.failure == failure


# which model answered, and what the server says


@pytest.mark.parametrize(
    ("rule", "named", "failure"),
    [
        ("any", "IMPOSTOR", None),
        ("any", None, None),
        ("prefix", "tiny", None),
        ("prefix", "tiny-2024-07-18", None),
        ("prefix", "IMPOSTOR", "other_model"),
        ("prefix", None, "other_model"),
        ("exact", "tiny", None),
        ("exact", "tiny-2024-07-18", "other_model"),
        ("exact", None, "other_model"),
    ],
)
def test_an_answer_of_another_model_is_a_failure_of_its_own(ask, rule, named, failure, tmp_path):
    answer = one(replying(stating(model=named)), ask, tmp_path, expect_model=rule)
    assert answer.failure == failure
    assert answer.prompt_tokens == USAGE[0]  # it was paid for
    if failure:
        assert [word in str(answer.said) for word in ("tiny", rule)] == [True, True]


def test_the_model_that_answered_is_told(ask, tmp_path: Path) -> None:
    names = {"model": "tiny-2024-07-18", "system_fingerprint": "fp_1"}
    answer = one(replying(stating(**names)), ask, tmp_path)
    assert (answer.reply_model, answer.system_fingerprint) == ("tiny-2024-07-18", "fp_1")
    for nameless in (None, "", 7, ["tiny"]):
        answer = one(replying(stating(model=nameless)), ask, tmp_path / repr(nameless))
        assert (answer.failure, answer.reply_model) == (None, None)


THOUGHTS = "B is wrong on the date; the key is \ud800" + KEY


@pytest.mark.parametrize(
    "said",
    [
        {"reasoning_content": THOUGHTS},
        {"reasoning": THOUGHTS, "reasoning_content": None},
        {"reasoning": THOUGHTS, "reasoning_content": THOUGHTS},
    ],
)
def test_the_thoughts_of_a_judge_are_kept_without_the_key(ask, said, tmp_path: Path) -> None:
    def thinking(whole: Body) -> Body:
        message = whole["choices"][0]["message"]
        return with_choice(message={**message, **said})(whole)

    server = replying(thinking)
    answer = one(server, ask, tmp_path)
    assert answer.reasoning == "B is wrong on the date; the key is ?[key]"
    bare = one(BatchServer(), ask, tmp_path / "bare")
    assert (answer.text, answer.failure, bare.reasoning) == (bare.text, None, None)


@pytest.mark.parametrize("parts", [None, {}, 7, ["why"], {"summary": "why"}, "  "])
def test_thoughts_that_are_no_text_fail_no_answer(ask, parts, tmp_path: Path) -> None:
    def thinking(whole: Body) -> Body:
        message = {**whole["choices"][0]["message"], "reasoning": parts}
        return with_choice(message=message)(whole)

    answer = one(replying(thinking), ask, tmp_path)
    assert (answer.failure, answer.reasoning) == (None, None)


def test_a_name_is_inert_short_and_without_the_key(ask, tmp_path: Path) -> None:
    name = f"m\x1b[31m{KEY}\ud800" + "x" * 900
    told = one(replying(stating(model=name)), ask, tmp_path).reply_model or ""
    assert told.startswith("m\N{REPLACEMENT CHARACTER}[31m[key]")
    assert len(told) == 300


@pytest.mark.parametrize(
    ("reply", "words", "advice"),
    [
        (lambda s, b: error(400, f"no luck {KEY}"), "HTTP 400:", "'base_url' or options"),
        (lambda s, b: error(422, "odd\x1b[2J"), "HTTP 422:", "'base_url' or options"),
        (lambda s, b: error(500, "oops"), "HTTP 500:", "see whether the endpoint is up"),
        (lambda s, b: error(400, "y" * 1000), "HTTP 400:", "yyy"),
        (lambda s, b: error(400, "maximum context length is 9"), "context length is 9",
         "a longer context"),
        (lambda s, b: JSONResponse(completion(b, "{", "length")), "the limit of its length",
         "raise 'decoding.max_tokens'"),
        (lambda s, b: JSONResponse(completion(b, "Response 1 is better.")),
         "the answer starts with", "a simpler prompt"),
        (lambda s, b: JSONResponse(called("tool_calls")(completion(b, None))), "called a tool",
         "turn them off"),
    ],
)  # fmt: skip
def test_why_an_answer_failed_is_stored_and_in_the_ledger(ask, reply, words, advice, tmp_path):
    told: list[str] = []
    with serving(failing(reply)) as server:
        asked = ask(server, tmp_path)
        buyer = Buyer(store_in(tmp_path))
        verdicts = annotate(
            asked,
            BATTLES,
            slug="j",
            buyer=buyer,
            on_progress=lambda account: told.append(account.text("j", None)),
        )
    assert verdicts["said"].str.contains(words, regex=False).all()
    assert verdicts["said"].str.len().max() <= 300
    assert all(map(str.isprintable, verdicts["said"]))
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not [content for content in files if KEY.encode() in content]
    description = str(result_of(VERDICTS, "nearly_all_answers_parse", verdicts).description)
    assert [part in description for part in (words, advice)] == [True, True]
    assert words in told[-1]
    (reason,) = buyer.account.entries(asked, None)["failure_reasons"]
    assert (words in reason["said"], reason["answers"]) == (True, 4)


def test_answers_of_another_model_are_charged_stored_and_not_bought_again(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with serving(replying(stating(model="other"))) as server:
        asked = live(server, tmp_path, expect_model="exact")
        for n_asked, retried in ((4, RETRIED), (0, RETRIED), (4, {*RETRIED, "other_model"})):
            buyer = Buyer(store, Budget.parse(["100calls"]), retried)
            verdicts = annotate(asked, BATTLES, slug="j", buyer=buyer)
            assert set(verdicts["status"]) == {"other_model"}
            assert (buyer.account.n_asked, buyer.account.charged.calls) == (n_asked, n_asked)
    assert verdicts[list(SCORE_COLUMNS)].isna().all(axis=None)
    assert verdicts["reply_model"].eq("other").all()


@pytest.mark.parametrize(
    ("server", "fields", "words"),
    [
        (replying(stating(model="other")), {"expect_model": "exact"}, r"'other'.*'expect_model'"),
        (failing(lambda s, b: error(400, "no idea")), {}, r"no idea.*'model', 'base_url'"),
    ],
)
def test_a_judge_of_which_every_answer_fails_for_good_stops(server, fields, words, tmp_path):
    with serving(server), pytest.raises(EndpointError, match=words) as caught:
        answered(live(server, tmp_path, concurrency=2, **fields), some(300))
    assert not isinstance(caught.value, OutOfReachError)
    assert len(server.presentations) < 300


@pytest.mark.parametrize("name", ["reply_model", "system_fingerprint"])
def test_a_second_model_among_the_answers_warns(name: str, tmp_path: Path) -> None:
    def reply(server: FaultServer, body: Body) -> Response:
        named = {"model": "tiny-1", "system_fingerprint": "fp_1"}
        if "Question 1" in body["messages"][0]["content"]:
            named[{"reply_model": "model"}.get(name, name)] = "IMPOSTOR"
        return JSONResponse({**completion(body, judged(body)), **named})

    with serving(failing(reply)) as server:
        verdicts = annotate(live(server, tmp_path), BATTLES, slug="j")
    warned = judging.answers_name_one_model(verdicts, ANY)
    assert (warned.passed, warned.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert [w in str(warned.description) for w in ("IMPOSTOR 2", "expect_model")] == [True, True]
    assert judging.answers_name_one_model(verdicts[verdicts["battle_id"].eq("b0")], ANY).passed


@pytest.mark.parametrize(
    ("named", "fields", "is_told"),
    [
        ("tiny", {}, False),
        ("tiny-2024-07-18", {}, False),
        ("router/Tiny", {}, False),
        (None, {}, False),
        ("IMPOSTOR", {}, True),
        ("IMPOSTOR", {"expect_model": "any"}, False),
    ],
)
def test_another_model_than_the_judge_asks_for_is_told_once_and_on_the_board(
    ask, named, fields, is_told, tmp_path
):
    warnings: list[str] = []
    with serving(replying(stating(model=named))) as server:
        verdicts = annotate(
            ask(server, tmp_path, warn=warnings.append, **fields), BATTLES, slug="j"
        )
    assert set(verdicts["status"]) == {"ok"}
    told = [text for text in warnings if "IMPOSTOR" in text and "'tiny'" in text]
    assert (len(told), len(warnings)) == (is_told, is_told)
    check = judging.answers_name_one_model(verdicts, catalog_of(model="tiny", **fields))
    assert check.passed is not is_told
    if is_told:
        assert "4 answers name IMPOSTOR, and the judge asks for tiny" in str(check.description)


# tables and stores of older versions


def test_a_table_of_an_older_version_is_checked_as_before() -> None:
    told = {**dict.fromkeys(VERDICT_DTYPES), "judge": "j", "replicate": 0, "identity": "i"}
    rows = [told | {"battle_id": "b", "order": o, "status": "transport"} for o in ("AB", "BA")]
    old = pd.DataFrame(rows).astype(VERDICT_DTYPES).drop(columns=SAID)
    assert result_of(VERDICTS, "verdicts_are_well_formed", old).passed
    assert judging.answers_name_one_model(old, ANY).passed
    assert "transport 2" in str(result_of(VERDICTS, "nearly_all_answers_parse", old).description)


# identity


BASE: dict[str, Any] = {"structured_output": "off", "model": "m"}
DECODING = {"temperature": 0.5, "top_p": 0.5, "max_tokens": 100, "seed": 1}
SHAPING: list[dict[str, Any]] = [
    *({"model": "other"}, {"revision": "2"}, {"endpoint_name": "lab"}, {"template": "T"}),
    *({"structured_output": "on"}, {"log_probabilities": "on"}, {"url": "http://other/v1"}),
    *({"extra_body": {"x": 1}}, {"reasoning_effort": "low"}),
]
OTHERS: list[dict[str, Any]] = [
    *({"concurrency": 99}, {"timeout_s": 5}, {"replicates": 3}, {"api_key_env": "OTHER_KEY"}),
    *({"price_per_million": {"prompt": 1, "completion": 2}}, {"expect_model": "exact"}),
    *({"headers": {"X-Title": "t"}}, {"headers": {"api-key": {"env": "AZURE_KEY"}}}),
    {"query": {"api-version": "1"}},
]


def identity(template: str = TEMPLATE, url: str = "http://h/v1", **fields: Any) -> str:
    declared = ServedFields(**{**BASE, **fields})
    site = Site(Endpoint(url, KEY), Path("/nowhere"))
    judge = ServedJudge("j", declared, Prompt(template, RUBRIC), site)
    assert KEY not in json.dumps(dict(judge.identity))
    return identity_hash(judge.identity)


@pytest.mark.parametrize(
    ("fields", "is_part"),
    [
        *(({"decoding": {name: value}}, True) for name, value in DECODING.items()),
        *((fields, True) for fields in SHAPING),
        *((fields, False) for fields in OTHERS),
    ],
    ids=str,
)
def test_what_shapes_an_answer_is_identity_and_nothing_else(fields, is_part: bool) -> None:
    assert (identity(**fields) != identity()) is is_part


def test_a_named_endpoint_may_move_and_a_body_be_reordered() -> None:
    named = {"endpoint_name": "lab"}
    assert identity(url="http://a/v1", **named) == identity(url="http://b/v1", **named)
    bodies = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert identity(extra_body=bodies[0]) == identity(extra_body=bodies[1])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "1033f466c95112f89dfa6f6c22b21afc900a019a21a58e5894b3fc4faffd059e"),
        (
            {"decoding": {"temperature": None, "seed": 3}, "endpoint_name": "lab", "revision": "r"},
            "29462db2c702ac6c103dbc567ada4da71bc728371e669648198cb30e6e5a690c",
        ),
    ],
)
def test_identities_of_older_versions_stay(fields: dict[str, Any], expected: str) -> None:
    assert identity(template="T {instruction}", **fields) == expected
    shipped = load_judges(ROOT / "config" / "examples" / "judges.yaml")["qwen3-32b"]
    arena = load_corpora()["arena"]
    older = shipped.model_copy(update={"template": DEFAULT_TEMPLATE})  # of the time of the key
    assert judge_key(open_judge(older, arena)) == "dfc1e64811aa3134f2fd0f04e4dd59aa"


# money


def spent(
    ask: Any, tmp_path: Path, budget: Budget, **fields: Any
) -> tuple[dict[int, Reading], Any]:
    with serving(BatchServer()) as server:
        return dict(ask(server, tmp_path, **fields).answer(SHOWN, budget)), server


def test_a_budget_is_reserved_before_and_settled_after(ask, tmp_path: Path) -> None:
    budget = Budget(calls=12, money=1e9, currency="USD")
    price = {"prompt": 1000.0, "completion": 5000.0}
    given, server = spent(ask, tmp_path, budget, price_per_million=price)
    assert sorted(given) == list(range(12))
    assert len(server.presentations) + server.submitted.total() == budget.spent.calls == 12
    assert budget.spent[1:3] == (12 * USAGE[0], 12 * USAGE[1])
    assert budget.spent.money == pytest.approx(12 * (USAGE[0] + 5 * USAGE[1]) / 1000)
    assert budget.n_open == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "judge 'j' has no price; add 'price_per_million'"),
        ({"price_per_million": {"prompt": 1, "completion": 2}}, "in EUR, the price .* in USD"),
    ],
)
def test_a_budget_in_money_needs_a_price(ask, fields, message: str, tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        given = ask(server, tmp_path, **fields).answer(SHOWN, Budget(money=1.0, currency="EUR"))
        with pytest.raises(ValueError, match=message):
            next(given)
    assert server.presentations == []
    assert server.batches == {}


def test_implausible_usage_counts_as_reserved_and_is_said_once(ask, tmp_path: Path) -> None:
    budget, warnings = Budget(tokens=60_000), list[str]()
    with serving(replying(stating(usage=stated((1, 1))))) as server:
        judge = ask(server, tmp_path, warn=warnings.append)
        given = {place: one.answer for place, one in judge.answer(SHOWN, budget)}
    assert {(one.prompt_tokens, one.completion_tokens) for one in given.values()} == {(1, 1)}
    assert 0 < len(given) < len(SHOWN)
    assert budget.spent.prompt_tokens + budget.spent.completion_tokens > 1700 * len(given)
    (warning,) = warnings
    assert "implausible usage: the endpoint states 1 + 1 tokens" in warning
    assert judge.counts["implausible_usage"] == len(given)


# the key


def test_the_key_shows_nowhere(ask, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return {"question 0": "said", "question 1": "refused", "question 2": "no"}.get(texts[0])

    tokens = [{"token": t, "logprob": -0.5, "top_logprobs": []} for t in (KEY[:4], KEY[4:])]
    leaking = with_choice(logprobs={"content": tokens})
    extra = {
        "said": lambda s, b: JSONResponse(leaking(completion(b, f"{judged(b)} Bearer {KEY}"))),
        "refused": lambda s, b: JSONResponse(completion(b, None, refusal=f"not with {KEY}")),
        "no": lambda s, b: error(400, f"no {KEY}"),
    }
    with serving(BatchServer(fault, extra=extra)) as server:
        asked = ask(server, tmp_path, log_probabilities="on")
        given = answered(asked, some(5))
    said, refused, failed, *_ = given
    assert (said.failure, said.log_probabilities) == (None, None)
    assert str(said.text).endswith("Bearer [key]")
    assert (refused.failure, refused.text) == ("refusal", "not with [key]")
    assert str(failed.said).endswith("no [key]")
    shown = [repr(asked), repr(asked._site), repr(given), str(asked.identity), caplog.text]
    shown += [str(asked.metadata), *map(repr, vars(asked).values())]
    assert f"Bearer {KEY}" in server.keys
    assert not [text for text in shown if KEY in text]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_key_as_short_as_a_word_is_no_secret(tmp_path: Path) -> None:
    server = replying(stating(model="tiny", system_fingerprint="fp_tin"))
    answer = one(server, live, tmp_path, key="tin", expect_model="exact")
    assert (answer.failure, answer.text) == (None, judged(server.presentations[0]))
    assert (answer.reply_model, answer.system_fingerprint) == ("tiny", "fp_tin")


def test_replicates_are_drawn_with_seeds_of_their_own(ask, tmp_path: Path) -> None:
    runs = [presentation(0, replicate=k) for k in range(3)]
    with serving(BatchServer()) as server:
        answered(ask(server, tmp_path, decoding={"seed": 7}), runs)
        answered(ask(server, tmp_path), runs)
    lines = [json.loads(line)["body"] for upload in server.uploads for line in upload.splitlines()]
    seeds = [body.get("seed") for body in (lines or server.presentations)]
    assert sorted(seeds[:3]) == [7, 8, 9]
    assert seeds[3:] == [None] * 3


def test_one_disliked_question_fails_alone(ask, tmp_path: Path) -> None:
    with serving(BatchServer(on_question(3, "odd-400"))) as server:
        given = answered(ask(server, tmp_path), some(6))
    assert [answer.failure for answer in given] == [None] * 3 + ["rejected"] + [None] * 2
