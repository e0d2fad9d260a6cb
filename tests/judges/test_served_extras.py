"""What an entry adds to requests: where it goes, what it may not say, and that secrets stay out."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from answering import answered
from fault_server import Body, FaultServer, completion, error, judged, serving
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from test_batch_judge import batch_judge
from test_served_client import TEMPLATE, always, identity, once, presentation

from judgeline.verdict.identity import identity_hash
from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition, load_judges
from resources.config.paths import ROOT
from resources.judges.calls import judge_key
from resources.judges.catalog import open_judge, open_managed
from resources.judges.live.endpoint import find_endpoint
from resources.judges.live.fields import ServedFields
from resources.judges.live.judge import ServedJudge

SECRET = "azure-0123456789-hush"  # noqa: S105
CORPUS = CorpusDefinition(slug="c", display_name="C", reader="arena", seed=1)


class Noting(FaultServer):
    """Remembers the headers and the address of the requests that judge."""

    seen: list[tuple[dict[str, str], str]]

    async def chat(self, request: Request) -> Response:
        self.seen = [*getattr(self, "seen", []), (dict(request.headers), str(request.url))]
        return await super().chat(request)


def define(tmp_path: Path, **fields: Any) -> JudgeDefinition:
    file = tmp_path / "judges.yaml"
    entry = {"display_name": "J", "family": "f", "kind": "openai", "model": "tiny", **fields}
    file.write_text(yaml.safe_dump({"j": entry}), encoding="utf-8")
    return load_judges(file)["j"]


def opened(server: FaultServer, folder: Path, fields: dict[str, Any], **variables: str) -> Any:
    declared = ServedFields(model="tiny", base_url=server.url, timeout_s=2.0, **fields)
    place = find_endpoint("j", declared, variables)
    return ServedJudge("j", declared, TEMPLATE, place, folder)


def test_headers_query_and_body_reach_the_endpoint(tmp_path: Path) -> None:
    fields = {
        "headers": {"api-key": {"env": "AZURE_KEY"}, "X-Title": "judgeline"},
        "query": {"api-version": "2024-10-21"},
        "extra_body": {"provider": {"allow_fallbacks": False}},
        "reasoning_effort": "low",
    }
    with serving(Noting()) as server:
        asked = opened(server, tmp_path, fields, AZURE_KEY=SECRET)
        (answer,) = answered(asked, [presentation(0)])
        headers, url = server.seen[-1]
    assert answer.failure is None
    assert (headers["api-key"], headers["x-title"]) == (SECRET, "judgeline")
    assert "authorization" not in headers  # the placeholder for a key would be refused first
    assert url.endswith("/v1/chat/completions?api-version=2024-10-21")
    (body,) = server.presentations
    assert body["provider"] == {"allow_fallbacks": False}
    assert (body["reasoning_effort"], body["model"]) == ("low", "tiny")


def test_a_key_and_a_header_go_together(tmp_path: Path) -> None:
    fields = {"headers": {"X-Team": {"env": "TEAM"}}, "api_key_env": "KEY"}
    with serving(Noting()) as server:
        answered(opened(server, tmp_path, fields, TEAM="team-of-mine", KEY="k"), [presentation(0)])
        headers, _ = server.seen[-1]
    assert (headers["authorization"], headers["x-team"]) == ("Bearer k", "team-of-mine")


def test_a_header_may_replace_the_key(tmp_path: Path) -> None:
    fields = {"headers": {"authorization": {"env": "OWN"}}}
    with serving(Noting()) as server:
        answered(opened(server, tmp_path, fields, OWN=f"Api-Key {SECRET}"), [presentation(0)])
        headers, _ = server.seen[-1]
    assert headers["authorization"] == f"Api-Key {SECRET}"


def test_batches_carry_them_too(tmp_path: Path) -> None:
    from batch_server import BatchServer

    with serving(BatchServer()) as server:
        asked = batch_judge(server, tmp_path, extra_body={"x": 1}, reasoning_effort="high")
        answered(asked, [presentation(0)])
        (line,) = server.uploads[0].splitlines()
    body = json.loads(line)["body"]
    assert (body["x"], body["reasoning_effort"]) == (1, "high")


# identity


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "1033f466c95112f89dfa6f6c22b21afc900a019a21a58e5894b3fc4faffd059e"),
        (
            {
                "decoding": {"temperature": None, "seed": 3},
                "endpoint_name": "lab",
                "revision": "r",
            },
            "29462db2c702ac6c103dbc567ada4da71bc728371e669648198cb30e6e5a690c",
        ),
    ],
)
def test_an_entry_without_them_keeps_its_identity(fields: dict[str, Any], expected: str) -> None:
    assert identity(template="T {instruction}", **fields) == expected


def test_a_managed_judge_keeps_its_identity() -> None:
    shipped = load_judges(ROOT / "config" / "judges.yaml")["qwen3-32b"]
    assert judge_key(open_managed(shipped)) == "dfc1e64811aa3134f2fd0f04e4dd59aa"


@pytest.mark.parametrize("fields", [{"extra_body": {"x": 1}}, {"reasoning_effort": "low"}])
def test_what_shapes_an_answer_is_identity(fields: dict[str, Any]) -> None:
    assert identity(**fields) != identity()


@pytest.mark.parametrize(
    "fields",
    [
        {"headers": {"X-Title": "t"}},
        {"headers": {"api-key": {"env": "AZURE_KEY"}}},
        {"query": {"api-version": "1"}},
        {"expect_model": "exact"},
    ],
)
def test_what_shapes_no_answer_is_not(fields: dict[str, Any]) -> None:
    assert identity(**fields) == identity()


def test_the_order_of_a_body_is_no_part_of_identity() -> None:
    one, other = ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1})
    assert identity(extra_body=one) == identity(extra_body=other)


# what they may not say


@pytest.mark.parametrize(
    "name",
    [
        *("messages", "model", "stream", "n", "max_tokens", "max_completion_tokens", "tools"),
        *("temperature", "top_p", "seed", "response_format", "logprobs", "top_logprobs"),
        "reasoning_effort",
    ],
)
def test_a_body_cannot_replace_what_a_request_is_made_of(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"judges\.yaml, line \d+: .*'extra_body'") as caught:
        define(tmp_path, extra_body={name: 1})
    assert f"'{name}'" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"headers": {"api-key": "hush-hush"}}, ["'headers'", "'api-key'", "{env: VARIABLE}"]),
        ({"headers": {"Cookie": "hush-hush"}}, ["'headers'", "'Cookie'", "{env: VARIABLE}"]),
        ({"headers": {"X": "sk-hushhushhushhushhush"}}, ["'headers'", "'X'", "{env: VARIABLE}"]),
        ({"headers": {"X": {"env": "sk-hush-hush"}}}, ["'headers'", "'X'", "in capitals"]),
        ({"headers": {"X": {"variable": "HUSH"}}}, ["'headers'", "'X'", "{env: VARIABLE}"]),
        ({"headers": {"X": "hush\nhush"}}, ["'headers'", "'X'", "characters"]),
        ({"headers": {"hush hush": "x"}}, ["'headers'", "letters"]),
        ({"headers": {"Content-Length": "1"}}, ["'headers'", "'Content-Length'", "remove it"]),
        ({"headers": "hush"}, ["'headers'", "mapping"]),
        ({"query": {"api-key": "hush-hush"}}, ["'query'", "'api-key'", "{env: VARIABLE}"]),
        ({"query": {"v": {"env": "HUSH"}}}, ["'query'", "'v'", "quotes"]),
        ({"extra_body": {"auth": {"api_key": "hush"}}}, ["'extra_body'", "'api_key'", "header"]),
        ({"extra_body": {"a": ["sk-hushhushhushhushhush"]}}, ["'extra_body'", "'a'", "header"]),
        ({"extra_body": {"hush": float("nan")}}, ["'extra_body'", "JSON"]),
        ({"reasoning_effort": "Hush hush"}, ["'reasoning_effort'"]),
        ({"expect_model": "always"}, ["'expect_model'", "'any', 'prefix' or 'exact'"]),
        ({"kind": "recorded", "model": None, "headers": {"X": "1"}}, ["headers"]),
        ({"kind": "vllm", "headers": {"X": "1"}}, ["remove ['headers']"]),
    ],
)
def test_mistakes_name_file_key_and_remedy_but_no_secret(
    fields: dict[str, Any], parts: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"judges\.yaml, line \d+: judge 'j'") as caught:
        define(tmp_path, **fields)
    said = str(caught.value)
    assert [part for part in parts if part not in said] == []
    assert "hushhush" not in said
    assert "hush-hush" not in said


def test_a_version_written_as_a_date_is_the_text_that_it_looks_like(tmp_path: Path) -> None:
    file = tmp_path / "judges.yaml"
    start = "j: {display_name: J, family: f, kind: openai, model: m, query: {api-version: "
    file.write_text(f"{start}2024-10-21}}}}", encoding="utf-8")
    assert load_judges(file)["j"].query == {"api-version": "2024-10-21"}


def test_a_variable_that_is_missing_is_named(tmp_path: Path, home: Path) -> None:
    fields = {"base_url": "http://127.0.0.1:9/v1", "headers": {"api-key": {"env": "AZURE_KEY"}}}
    with pytest.raises(ValueError, match=r"'headers.api-key' .* AZURE_KEY, which is not set"):
        answered(open_judge(define(tmp_path, **fields), CORPUS), [presentation(0)])


# the secret


def test_a_secret_header_shows_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def echoing(server: FaultServer, body: Body) -> Response:
        return JSONResponse(completion(body, judged(body) + f" I was told {SECRET}."))

    caplog.set_level(logging.DEBUG)
    fields = {"headers": {"Authorization": {"env": "OWN"}}}
    with serving(Noting(once("500"), extra={"echo": echoing})) as server:
        asked = opened(server, tmp_path, fields, OWN=f"Bearer {SECRET}")
        (fine,) = answered(asked, [presentation(0)])
        server.fault = always("echo")
        (echoed,) = answered(asked, [presentation(1)])
        server.fault, server.extra = always("no"), {"no": lambda s, b: error(400, f"no {SECRET}")}
        (failed,) = answered(asked, [presentation(2)])
    shown = [repr(asked), repr(asked._endpoint), str(asked.identity), str(asked.metadata)]
    shown += [repr(fine), repr(echoed), repr(failed), caplog.text, *map(repr, vars(asked).values())]
    assert "I was told [key]." in str(echoed.text)
    assert failed.said == "HTTP 400: no [key]"
    assert not [text for text in shown if SECRET in text]
    assert not [file for file in tmp_path.rglob("*") if SECRET in file.read_text()]
    assert len(identity_hash(asked.identity)) == 64
