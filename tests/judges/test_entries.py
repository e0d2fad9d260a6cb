"""Entries of judges.yaml: what they may say, and what is said about the rest."""

import os
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from answering import answered
from batch_server import BatchServer
from channels import NOWHERE, SHOWN, some
from fault_server import KEY, FaultServer, judged, serving

from judgeline.judges.batch.judge import BatchJudge
from judgeline.judges.definition import BuiltinTraits, JudgeDefinition
from judgeline.judges.forms.choice import ChoiceForm, ChoiceOptions
from judgeline.judges.forms.form import Prompt
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.forms.score import ScoreForm, ScoreOptions
from judgeline.judges.judge import call_identity, judge_key
from judgeline.judges.live.connection import Connection
from judgeline.judges.live.endpoint import Endpoint, find_endpoint
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.live.judge import ServedJudge, Site
from judgeline.judges.live.probe import Capabilities
from judgeline.judges.managed.judge import ManagedJudge, server_command, server_environment
from judgeline.judges.managed.options import Hosting, VllmOptions
from judgeline.judges.opening import in_form, prompt_of, read_template, was_probed
from judgeline.judges.presentation import Presentation
from judgeline.paths import ROOT
from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RESPONSES
from resources.config.corpora import CorpusDefinition
from resources.config.judges import load_judges
from resources.opening import open_judge

SHIPPED = {
    slug: judge
    for folder in ("config", "config/examples")
    for slug, judge in load_judges(ROOT / folder / "judges.yaml").items()
}
SERVED = [slug for slug, judge in SHIPPED.items() if judge.kind == "openai"]
CORPUS = CorpusDefinition(slug="c", display_name="C", reader="arena", seed=1)
VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY", "VLLM_BASE_URL")
TOKEN = "hf_" + "hush" * 5
ENTRY = {"display_name": "J", "family": "f", "kind": "openai", "model": "tiny"}
VLLM = {"kind": "vllm"}
TRAITS = dict.fromkeys(BuiltinTraits.model_fields, 0)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def load(tmp_path: Path, text: str) -> dict[str, JudgeDefinition]:
    file = tmp_path / "judges.yaml"
    file.write_text(text, encoding="utf-8")
    return load_judges(file)


def define(tmp_path: Path, **fields: Any) -> JudgeDefinition:
    return load(tmp_path, yaml.safe_dump({"j": {**ENTRY, **fields}}))["j"]


def complaint(tmp_path: Path, text: str) -> str:
    """What is said about a file, which names it and shows no secret, nor does what is behind it."""
    with pytest.raises(ValueError, match=r"judges\.yaml") as caught:
        load(tmp_path, text)
    error: BaseException | None = caught.value
    while error is not None:
        assert "hush" not in f"{error}{error!r}"
        error = error.__cause__ or error.__context__
    return str(caught.value)


# what is wrong


NAMED = "r: {display_name: R, family: f, kind: "
RECORDED = NAMED + "recorded}\n"
J = "j:\n  display_name: J\n  family: f\n  kind: openai\n  model: m\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (NAMED + "recoded}", ["'r'", "'kind'", "'recoded'"]),
        ("r: {display_name: R, kind: recorded}", ["'r' lacks the key 'family'"]),
        (NAMED + "recorded, famly: g}", ["'famly'", "mean 'family'"]),
        (NAMED + "recorded, zz: 1}", ["'zz'", "display_name, endpoint_name, expect_model"]),
        (NAMED + "builtin, builtin: {noize: 1}}", ["'builtin.noize'", "mean 'noise'"]),
        (NAMED + "builtin}", ["'builtin'", "traits"]),
        (NAMED + "builtin, builtin: {seed: 1}}", ["lacks the key 'builtin.noise'"]),
        (NAMED + "openai}", ["needs the name of its 'model'"]),
        (NAMED + "recorded, model: m}", ["remove ['model']"]),
        (RECORDED.replace("r:", "Big/Judge:"), ["'Big/Judge'", "slug"]),
        (RECORDED.replace("r:", "7:"), ["judge 7", "slug"]),
        (RECORDED.replace("r:", "pooled:"), ["line 1", "'pooled'", "another name"]),
        (NAMED.replace("{", "{slug: x, ") + "recorded}", ["its key above"]),
        ("r: recorded", ["'r' is 'recorded'"]),
        ("- r", ["mapping"]),
        ("", ["no judges"]),
        ("r: [", ["line 1", "valid YAML"]),
        ("r:\n  kind: recorded\n  famly: f", ["line 3: judge 'r'", "'famly'"]),
        ("r:\n  kind: recorded\n  kind: builtin", ["line 3: the key 'r.kind'", "in line 2"]),
        ("a: " + "[" * 5000, ["nested too deeply"]),
        (RECORDED + RECORDED, ["line 2: the key 'r' is there already, in line 1"]),
        ("r: !!python/object/apply:os.getcwd []", ["valid YAML"]),
        # a key in the file
        (J + "  api_key_env: hush-hush", ["line 6", "'api_key_env'", "never belongs"]),
        (J + "  api_key_env: hf_hushhush", ["'api_key_env'", "OPENAI_API_KEY"]),
        (J + "  api_key: hush-hush", ["line 6", "'api_key'", "mean 'api_key_env'"]),
        (J + "  api_key: hush-hush: x", ["line 6"]),
        (J + "  api_key: 'hush-hush", ["line 6"]),
        (J + "  api_key: *hush-hush", ["line 6"]),
        (J + "  api_key: !hush-hush x", ["line 6"]),
        (J + "  base_url: https://user:hush-hush@host/v1", ["line 6", "'base_url'", "credentials"]),
        (J + "  base_url: https://user:hush-hush@[host/v1", ["line 6"]),
        (J + "  base_url: https://host\u2100hush-hush/v1", ["line 6"]),
        (J + "  base_url: https://host/v1?api-key=hush-hush", ["'base_url'", "a query"]),
        *(
            (f"{J}  {line}", [f"line 6: judge 'j', key '{line.partition(':')[0]}"])
            for line in (
                "timeout_s: .inf", "timeout_s: true",
                "price_per_million: {prompt: .inf, completion: 1}",
                "decoding: {temperature: .nan}", "decoding: {seed: true}",
                "decoding: {max_tokens: 99999999999999999999}", "concurrency: true",
                "concurrency: '4'", "replicates: 2.0", "base_url: http://h:99999/v1",
                "base_url: 'http://h/v 1'", "base_url: 'http://h/v\u00e9'",
                "base_url: 'http://[::1/v1'",
            )
        ),
    ],
)  # fmt: skip
def test_mistakes_in_a_file_name_place_and_remedy(tmp_path, text, parts):
    message = complaint(tmp_path, text)
    assert [part for part in parts if part not in message] == []


ONCE = "{env: VARIABLE}"
OURS = (
    *("messages", "model", "stream", "n", "max_tokens", "max_completion_tokens", "tools"),
    *("temperature", "top_p", "seed", "response_format", "logprobs", "top_logprobs"),
    "reasoning_effort",
)


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"decoding": {"temprature": 1}}, ["'decoding.temprature'", "mean 'temperature'"]),
        ({"decoding": {"max_tokens": 1}}, ["'decoding.max_tokens'", "found 1"]),
        ({"price_per_million": {"prompt": 1}}, ["lacks the key 'price_per_million.completion'"]),
        ({"price_per_million": {"prompt": -1, "completion": 0}}, ["price_per_million.prompt"]),
        ({"structured_output": "yes"}, ["'structured_output'", "'on', 'off' or 'auto'"]),
        ({"concurrency": 0}, ["'concurrency'", "found 0"]),
        ({"base_url": "gpu-host:8000"}, ["'base_url'", "VLLM_BASE_URL"]),
        ({"kind": "recorded", "concurrency": 4}, ["remove ['model', 'concurrency']"]),
        # headers, query and body
        ({"headers": {"api-key": "hush-hush"}}, ["'headers'", "'api-key'", ONCE]),
        ({"headers": {"Cookie": "hush-hush"}}, ["'headers'", "'Cookie'", ONCE]),
        ({"headers": {"X": "sk-hushhushhushhushhush"}}, ["'headers'", "'X'", ONCE]),
        ({"headers": {"X": {"env": "sk-hush-hush"}}}, ["'headers'", "'X'", "in capitals"]),
        ({"headers": {"X": {"variable": "HUSH"}}}, ["'headers'", "'X'", ONCE]),
        ({"headers": {"X": "hush\nhush"}}, ["'headers'", "'X'", "characters"]),
        ({"headers": {"hush hush": "x"}}, ["'headers'", "letters"]),
        ({"headers": {"Content-Length": "1"}}, ["'headers'", "'Content-Length'", "remove it"]),
        ({"headers": "hush"}, ["'headers'", "mapping"]),
        ({"query": {"api-key": "hush-hush"}}, ["'query'", "'api-key'", ONCE]),
        ({"query": {"v": {"env": "HUSH"}}}, ["'query'", "'v'", "quotes"]),
        ({"extra_body": {"auth": {"api_key": "hush"}}}, ["'extra_body'", "'api_key'", "header"]),
        ({"extra_body": {"a": ["sk-hushhushhushhushhush"]}}, ["'extra_body'", "'a'", "header"]),
        ({"extra_body": {"hush": float("nan")}}, ["'extra_body'", "JSON"]),
        *(({"extra_body": {name: 1}}, ["'extra_body'", f"'{name}'"]) for name in OURS),
        ({"reasoning_effort": "Very high"}, ["'reasoning_effort'"]),
        ({"expect_model": "always"}, ["'expect_model'", "'any', 'prefix' or 'exact'"]),
        ({"kind": "recorded", "model": None, "headers": {"X": "1"}}, ["headers"]),
        ({"kind": "vllm", "headers": {"X": "1"}}, ["remove ['headers']"]),
        # batches
        ({"kind": "vllm", "batch": True}, ["only kind 'openai' is asked in batches"]),
        ({"kind": "recorded", "model": None, "batch": True}, ["not served: remove", "'batch'"]),
        ({"batch": "perhaps"}, ["'batch'"]),
        ({"batch": True, "batch_poll_s": 0}, ["'batch_poll_s'"]),
        ({"batched": True}, ["did you mean 'batch'"]),
        # a server of our own
        ({"kind": "vllm", "base_url": "http://h/v1"}, ["server of its own", "['base_url']"]),
        ({"kind": "vllm", "api_key_env": "KEY"}, ["key of its own: remove ['api_key_env']"]),
        ({"kind": "openai", "vllm": {}}, ["only judges of kind 'vllm'"]),
        ({"kind": "recorded", "model": None, "vllm": {}}, ["only judges of kind 'vllm'"]),
        *(
            ({"kind": "vllm", "vllm": options}, parts)
            for options, parts in [
                ({"tensor_paralel_size": 2}, ["did you mean 'tensor_parallel_size'"]),
                ({"data_parallel_size": 0}, ["'vllm.data_parallel_size'", "greater than"]),
                ({"extra_args": ["--dtype=half"]}, ["has a key of its own, 'vllm.dtype'"]),
                ({"extra_args": ["--max_model_len", "9"]}, ["'vllm.max_model_len'; use that"]),
                ({"extra_args": ["--revision", "x"]}, ["has a key of its own, 'revision'"]),
                ({"extra_args": ["--port=80"]}, ["--port is chosen for each start; remove it"]),
                ({"extra_args": ["--max-num-seqs", 4]}, ["'vllm.extra_args.1'", "valid string"]),
                ({"extra_args": ["--api-key", "hush"]}, ["--api-key is chosen for each start"]),
            ]
        ),
        # forms
        ({**VLLM, "asks": []}, ["line 6", "'asks'", "at least 1"]),
        ({**VLLM, "asks": ["scores"]}, ["line 6", "'asks.0'", "'rubric', 'score' or 'choice'"]),
        ({**VLLM, "asks": ["score", "score"]}, ["names a form twice", "name each once"]),
        ({**VLLM, "score": {"samples": 3}}, ["'score' has options but is not in 'asks'"]),
        ({**VLLM, "asks": ["score"], "score": {"scale": [9, 1]}},
         ["line 9", "score.scale", "ascending"]),
        ({**VLLM, "asks": ["score"], "score": {"scale": [1, True]}}, ["score.scale"]),
        ({**VLLM, "asks": ["score"], "score": {"scale": [1]}}, ["score.scale"]),
        ({**VLLM, "asks": ["score"], "score": {"digits_per_token": 0}},
         ["line 9", "digits_per_token"]),
        ({**VLLM, "asks": ["score"], "score": {"samples": 1}},
         ["line 9", "score.samples", "found 1"]),
        ({**VLLM, "asks": ["choice"], "choice": {"sample": 3}},
         ["choice.sample", "mean 'samples'"]),
        ({**VLLM, "asks": ["choice"], "log_probabilities": "off"},
         ["each choice 10 times", "above 0"]),
        ({"kind": "recorded", "model": None, "asks": ["rubric"]}, ["remove ['asks']"]),
        ({**VLLM, "asks": ["score"], "score": {"structured": True}, "structured_output": "off"},
         ["remove one of the two"]),
        (
            {"kind": "builtin", "model": None, "asks": ["choice"], "builtin": TRAITS}
            | {"choice": {"structured": True}},
            ["only served judges answer with JSON"],
        ),
        *(
            ({"kind": "vllm", "vllm": {"extra_args": arguments}}, ["extra_args'", "set HF_TOKEN"])
            for arguments in (
                ["--hf-token", TOKEN],
                [f"--hf-token={TOKEN}"],
                ["--hf_token", TOKEN],
                [f"--hf-token {TOKEN}"],
                ["--hf-tok", TOKEN],  # a beginning is enough for the server
                ["--api-k", TOKEN],
                ["--model-loader-extra-config.api_key", TOKEN],
                ["--model-loader-extra-config", f'{{"auth": "{TOKEN}"}}'],
                ["--max-num-seqs", "4", TOKEN],
            )
        ),
    ],
)  # fmt: skip
def test_mistakes_in_an_entry_name_line_key_and_remedy(fields, parts, tmp_path):
    entry = {name: value for name, value in {**ENTRY, **fields}.items() if value is not None}
    message = complaint(tmp_path, yaml.safe_dump({"j": entry}, sort_keys=False))
    assert [
        part for part in ["judges.yaml, line", "judge 'j'", *parts] if part not in message
    ] == []


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / "judges.yaml"
    file.write_bytes("j: {display_name: \xe9}".encode("latin-1"))
    with pytest.raises(ValueError, match=r"judges\.yaml is not UTF-8 at byte 18"):
        load_judges(file)


def test_files_are_found_through_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGELINE_CONFIG", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="JUDGELINE_CONFIG"):
        load_judges()
    with pytest.raises(FileNotFoundError, match=r"prompts/mine\.txt; .* brings choice-json"):
        read_template("mine.txt")
    ours = read_template()
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "rubric.txt").write_text("of my own")
    assert "{first_completion}" in ours
    assert read_template() == "of my own"
    (tmp_path / "judges.yaml").write_text(RECORDED)
    assert load_judges()["r"].display_name == "R"


# what is right


def test_the_shipped_judges_load() -> None:
    assert list(SHIPPED)[:3] == ["careful", "hasty", "recorded"]
    assert {judge.kind for judge in list(SHIPPED.values())[3:]} == {"openai", "recorded", "vllm"}
    assert all(judge.slug == slug for slug, judge in SHIPPED.items())
    careful, hasty = SHIPPED["careful"].builtin, SHIPPED["hasty"].builtin
    assert careful is not None
    assert hasty is not None
    for trait in ("noise", "mood", "position_bias", "verbosity_bias", "family_bias"):
        assert getattr(careful, trait) < getattr(hasty, trait)
    assert careful.malformed_rate == 0 < hasty.malformed_rate
    simulated = [judge for judge in SHIPPED.values() if judge.kind == "builtin"]
    assert all("simulated" in judge.display_name for judge in simulated)


def test_the_template_asks_for_what_the_parser_reads() -> None:
    template = read_template()
    for word in (*CRITERIA, *RESPONSES, "{instruction}", "{first_completion}"):
        assert word in template


def test_defaults_are_those_of_a_judge(tmp_path: Path) -> None:
    judge = define(tmp_path)
    sampling = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 4096, "seed": None}
    assert judge.decoding.model_dump() == sampling
    assert (judge.structured_output, judge.log_probabilities) == ("auto", "off")
    assert (judge.replicates, judge.price_per_million) == (1, None)
    assert (judge.batch, judge.batch_poll_s, judge.vllm) == (False, 60.0, None)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        *((f"log_probabilities: {w}", "log_probabilities", w) for w in ("on", "off", "auto")),
        *((f"structured_output: {w}", "structured_output", w) for w in ("on", "off", "auto")),
        ("timeout_s: 5", "timeout_s", 5.0),
        ("base_url: 'http://[::1]:80/v1'", "base_url", "http://[::1]:80/v1"),
        ("query: {api-version: 2024-10-21}", "query", {"api-version": "2024-10-21"}),
    ],
)
def test_yaml_is_read_as_it_is_meant(line: str, name: str, value: Any, tmp_path: Path) -> None:
    assert getattr(load(tmp_path, f"{J}  {line}\n")["j"], name) == value


def test_whole_numbers_do_for_fractions(tmp_path: Path) -> None:
    judge = define(tmp_path, decoding={"temperature": 1, "seed": -3})
    assert (judge.decoding.temperature, judge.decoding.seed) == (1.0, -3)
    assert define(tmp_path, price_per_million={"prompt": 1, "completion": 2}).price_per_million


# what an entry becomes


@pytest.mark.parametrize("slug", SERVED)
def test_shipped_served_judges_open_once_their_variables_are_set(slug, monkeypatch):
    judge = SHIPPED[slug]
    with pytest.raises(ValueError, match=f"judge '{slug}' reads its .* is not set; set [A-Z_]+"):
        answered(open_judge(judge, CORPUS), some(1))
    for variable in VARIABLES:
        monkeypatch.setenv(variable, "http://x/v1" if variable.endswith("URL") else KEY)
    assert open_judge(judge, CORPUS)


@pytest.mark.parametrize(
    ("fields", "variables", "expected"),
    [
        ({}, {"OPENAI_API_KEY": "k"}, Endpoint("https://api.openai.com/v1", "k")),
        ({}, {"OPENAI_API_KEY": " k\n", "OPENAI_BASE_URL": "http://p/v1/"},
         Endpoint("http://p/v1", "k")),
        # the key to the hosted API goes nowhere else unless somebody says so
        ({"base_url": "http://h/v1"}, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://p/v1"},
         Endpoint("http://h/v1", "none")),
        ({"base_url": "MY_URL", "api_key_env": "MY_KEY"}, {"MY_URL": "http://h", "MY_KEY": "k"},
         Endpoint("http://h", "k")),
    ],
)  # fmt: skip
def test_endpoints_and_keys_come_from_where_they_are_said_to(fields, variables, expected):
    with mock.patch.dict(os.environ, variables, clear=True):
        assert find_endpoint("j", ServedFields(model="m", **fields)) == expected


@pytest.mark.parametrize(
    ("fields", "variables", "named"),
    [
        ({}, {}, "OPENAI_API_KEY, which is not set"),
        ({}, {"OPENAI_API_KEY": " "}, "OPENAI_API_KEY, which is not set"),
        ({}, {"OPENAI_API_KEY": "hush\nhush"}, "OPENAI_API_KEY holds characters"),
        ({}, {"OPENAI_API_KEY": "hüsh"}, "OPENAI_API_KEY holds characters"),
        ({}, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "hush"}, "OPENAI_BASE_URL is no endpoint"),
        ({"base_url": "http://h/v1", "headers": {"api-key": {"env": "AZURE_KEY"}}}, {},
         "'headers.api-key' .* AZURE_KEY, which is not set"),
    ],
)  # fmt: skip
def test_bad_variables_are_named_and_not_shown(fields, variables, named):
    with (
        mock.patch.dict(os.environ, variables, clear=True),
        pytest.raises(ValueError, match=named) as caught,
    ):
        Connection(find_endpoint("j", ServedFields(model="m", **fields)), 1.0)
    assert caught.value.__context__ is None
    assert "hush" not in str(caught.value)


def test_one_entry_and_one_variable_make_a_judge(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-mine")
    with serving(FaultServer()) as server:
        monkeypatch.setenv("MY_URL", server.url)
        (answer,) = answered(open_judge(define(tmp_path, base_url="MY_URL"), CORPUS), some(1))
    assert answer.text == judged(server.presentations[0])
    assert server.keys == {"Bearer none"}
    assert "openai-organization" not in server.headers


def test_one_word_in_the_entry_asks_in_batches(home, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    news: list[str] = []
    with serving(BatchServer()) as server:
        entry = {"base_url": server.url, "api_key_env": "MY_KEY", "batch_poll_s": 0.01}
        batch = open_judge(define(tmp_path, **entry, batch=True), CORPUS, Hosting(news.append))
        live = open_judge(define(tmp_path, **entry), CORPUS)
        assert answered(live, SHOWN) == answered(batch, SHOWN)
        assert batch.identity == live.identity
    assert (isinstance(batch, BatchJudge), isinstance(live, BatchJudge)) == (True, False)
    assert news[-1].endswith("completed, 30 answered, 0 failed")
    assert len(list((home / "batches").rglob("*.json"))) == 1


def test_a_prompt_of_ones_own_replaces_the_rubric(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("{delimiter} {instruction} {first_completion} {second_completion} Go.")
    fields = {"base_url": "http://h/v1", "structured_output": "off"}
    plain = open_judge(define(tmp_path, **fields), CORPUS)
    changed = open_judge(define(tmp_path, template=str(own), **fields), CORPUS)
    assert plain.identity["template"] != changed.identity["template"]
    with pytest.raises(FileNotFoundError, match=r"absent\.txt.*'template'"):
        open_judge(define(tmp_path, template="absent.txt", **fields), CORPUS)


def test_a_named_server_that_moves_keeps_what_was_found_and_its_verdicts(tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        here = define(tmp_path, base_url=server.url, endpoint_name="ours")
        assert not was_probed(here)
        identity = dict(open_judge(here, CORPUS).identity)
    moved = define(tmp_path, base_url=NOWHERE.url, endpoint_name="ours", api_key_env="NOT_SET")
    assert was_probed(moved)
    assert dict(open_judge(moved, CORPUS).identity) == identity
    assert not was_probed(define(tmp_path, base_url=NOWHERE.url))


# the server of a judge of kind vllm


def test_arguments_about_tokens_that_are_no_secrets_are_taken(tmp_path: Path) -> None:
    arguments = ["--tokenizer", "x", "--max-num-batched-tokens=9", "--ssl-keyfile", "/k.pem"]
    arguments += ["--return-tokens-as-token-ids", "--long-prefill-token-threshold", "4"]
    options = {"tensor_parallel_size": 2, "extra_args": arguments}
    assert define(tmp_path, kind="vllm", vllm=options).vllm == VllmOptions(**options)
    with pytest.raises(ValueError, match="set HF_TOKEN in the environment") as refused:
        VllmOptions(extra_args=("--hf-token", TOKEN))
    assert TOKEN not in str(refused.value)


def test_the_command_ends_with_the_users_arguments_so_that_they_win(tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    options = VllmOptions(extra_args=("--structured-outputs-config", "{}"))
    command = server_command("python", define(tmp_path, kind="vllm", model="weights"), options, 1)
    assert command[-2:] == ["--structured-outputs-config", "{}"]
    assert command.count("--structured-outputs-config") == 2
    assert not {"--max-model-len", "--revision"} & {*command}
    assert command[command.index("--model") + 1] == str(tmp_path / "weights")
    assert command[command.index("--served-model-name") + 1] == "weights"


def test_the_server_gets_its_key_and_its_interpreters_tools(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    variables = server_environment("/env/bin/python", "k")
    assert variables["VLLM_API_KEY"] == "k"
    assert variables["PATH"] == "/env/bin:/usr/bin"
    assert variables["HF_HUB_OFFLINE"] == "1"


# forms


def test_identities_of_the_rubric_are_those_of_before_there_were_forms(tmp_path: Path) -> None:
    """Pinned from the program that knew the rubric alone: verdicts bought by it stay valid."""
    template = "grade {instruction} {first_completion} {second_completion} {delimiter}"
    prompt = Prompt(template, RUBRIC)
    shown = Presentation("b", "AB", 1, "question", "one", "two", "x", "y")
    served = ServedJudge(
        "j",
        ServedFields(model="tiny", log_probabilities="on"),
        prompt,
        Site(
            Endpoint("http://h/v1", "none"),
            tmp_path,
            declared=Capabilities("max_tokens", True, True, 8192),
        ),
    )
    managed = ManagedJudge("j", ServedFields(model="tiny"), VllmOptions(), prompt, Hosting())
    few = ManagedJudge(
        "j", ServedFields(model="tiny", concurrency=3), VllmOptions(), prompt, Hosting()
    )
    in_flight = [judge._fields.concurrency for judge in (served, managed, few)]
    assert in_flight == [16, 256, 3]
    assert judge_key(few) == judge_key(managed)
    assert judge_key(served) == "3f678df1506673780017b795fc1ecfb4"
    assert call_identity(served, shown) == (
        "952f888fe635338647c54bbb9538bfa57d3b729199e90268fe9fefcfef101369"
    )
    assert judge_key(managed) == "411457bec19dab329ca43a24fbfed42e"
    assert call_identity(managed, shown) == (
        "e12554071484ac6e90a8bd4058209d15f5cd966b3c15e4e0c955b83a5f9dea93"
    )


def test_asking_for_more_forms_leaves_the_rubric_as_it_was(tmp_path: Path) -> None:
    plain = open_judge(define(tmp_path, **VLLM), CORPUS)
    more = define(tmp_path, **VLLM, asks=["rubric", "score", "choice"], score={"scale": [1, 9]})
    assert dict(open_judge(more, CORPUS).identity) == dict(plain.identity)
    assert dict(open_judge(more, CORPUS, form="choice").identity)["log_probabilities"] == "on"


def test_forms_have_defaults(tmp_path: Path) -> None:
    judge = define(tmp_path, **VLLM)
    assert judge.asks == ("rubric",)
    judge = define(tmp_path, **VLLM, asks=["choice", "score"])
    assert judge.score.model_dump() == {
        "scale": (1, 100),
        "digits_per_token": 3,
        "samples": 10,
        "template": None,
        "structured": False,
    }
    assert judge.choice.model_dump() == {
        "tolerance": 0.0, "samples": 10, "template": None, "structured": False,
    }  # fmt: skip


def test_a_judge_is_asked_in_no_other_form_than_its_own(tmp_path: Path) -> None:
    judge = define(tmp_path, **VLLM, asks=["score", "choice"])
    with pytest.raises(ValueError, match=r"add rubric to its asks.*score_verdicts\+ choice_verd"):
        open_judge(judge, CORPUS)
    with pytest.raises(ValueError, match=r"'choice' \(asks: \[rubric\]\)"):
        open_judge(define(tmp_path, **VLLM), CORPUS, form="choice")


def test_samples_may_be_wanted_where_they_can_differ(tmp_path: Path) -> None:
    judge = define(
        tmp_path, **VLLM, asks=["score"], log_probabilities="off", decoding={"temperature": 1.0}
    )
    opened = open_judge(judge, CORPUS, form="score")
    assert opened.evidence == "samples"
    assert "alternatives" not in opened.identity
    by_tokens = open_judge(define(tmp_path, **VLLM, asks=["score"]), CORPUS, form="score")
    assert by_tokens.evidence == "log-probabilities"


@pytest.mark.parametrize(
    ("arguments", "listed"),
    [
        ([], "20"),
        (["--max-logprobs", "5"], "5"),
        (["--max-logprobs=10"], "5"),
        (["--max_logprobs", "50"], "20"),
        (["--max-logprobs", "-1"], "20"),
        (["--max-logprobs", "5", "--max-logprobs", "30"], "20"),
    ],
)
def test_a_server_of_ours_is_asked_for_what_it_was_started_to_list(arguments, listed, tmp_path):
    judge = define(tmp_path, **VLLM, asks=["choice"], vllm={"extra_args": arguments})
    assert open_judge(judge, CORPUS, form="choice").identity["alternatives"] == listed


@pytest.mark.parametrize(
    ("form", "left_out"),
    [
        ("score", "{completion}"),
        ("score", "{lowest}"),
        ("score", "{highest}"),
        ("score", "{delimiter}"),
        ("choice", "{second_completion}"),
    ],
)
def test_a_prompt_of_ones_own_must_show_and_say_all(form, left_out, tmp_path):
    names = {
        "score": "delimiter instruction completion lowest highest",
        "choice": "delimiter instruction first_completion second_completion",
    }[form]
    whole = " ".join(f"{{{name}}}" for name in names.split())
    own = tmp_path / "own.txt"
    judge = define(tmp_path, **VLLM, asks=[form], **{form: {"template": str(own)}})
    own.write_text(whole, encoding="utf-8")
    assert prompt_of(judge, form).template == whole
    own.write_text(whole.replace(left_out, ""), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"own\.txt.*{re.escape(left_out)}"):
        open_judge(judge, CORPUS, form=form)


def test_shipped_prompts_ask_for_the_word_first(tmp_path: Path) -> None:
    judge = define(tmp_path, **VLLM, asks=["score", "choice"])
    for form, word in (("score", "integer"), ("choice", "letter")):
        opened = open_judge(judge, CORPUS, form=form)
        assert opened.form.name == form
        assert f"begin with the {word}" in prompt_of(judge, form).template


CHOICE = ChoiceForm(ChoiceOptions(structured=True))
SCORE = ScoreForm(ScoreOptions(scale=(1, 9), digits_per_token=1, structured=True))


@pytest.mark.parametrize(("form", "plain"), [(CHOICE, ChoiceForm()), (SCORE, ScoreForm())])
def test_structured_answers_have_an_identity_a_prompt_and_a_constraint(form, plain) -> None:
    assert form.identity["answer"] == "json"
    assert "answer" not in plain.identity
    assert form.template != plain.template
    assert plain.response_format is None
    schema = form.response_format["json_schema"]["schema"]
    assert list(schema["properties"]) == [form.name, "reason"]  # the value comes first
    assert schema["additionalProperties"] is False
    named = ChoiceForm(ChoiceOptions(structured=True, template="mine.txt"))
    assert named.template == "mine.txt"


def test_the_schema_goes_with_the_form_that_asks_for_it(tmp_path: Path) -> None:
    asks = ["rubric", "score", "choice"]
    judge = define(tmp_path, **VLLM, asks=asks, choice={"structured": True}, structured_output="on")
    wanted = {form: in_form(judge, form).structured_output for form in asks}
    assert wanted == {"rubric": "on", "score": "off", "choice": "on"}
    identities = {form: open_judge(judge, CORPUS, form=form).identity for form in asks}
    assert {form: one["structured_output"] for form, one in identities.items()} == {
        "rubric": "json_schema",
        "score": "none",
        "choice": "json_schema",
    }
