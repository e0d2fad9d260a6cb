from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from answering import answered
from fault_server import FINAL, KEY, FaultServer, judged, serving

from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition, load_judges
from resources.config.paths import ROOT
from resources.judges.annotation import annotate
from resources.judges.catalog import open_judge, was_probed
from resources.judges.judge import Presentation
from resources.judges.live.endpoint import Endpoint, find_endpoint
from resources.judges.live.fields import ServedFields

SHIPPED = load_judges(ROOT / "config" / "judges.yaml")
SERVED = [slug for slug, judge in SHIPPED.items() if judge.kind == "openai"]
CORPUS = CorpusDefinition(slug="c", display_name="C", reader="arena", seed=1)
VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY", "VLLM_BASE_URL")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def define(tmp_path: Path, **fields: Any) -> JudgeDefinition:
    file = tmp_path / "judges.yaml"
    entry = {"display_name": "J", "family": "f", "kind": "openai", "model": "tiny", **fields}
    file.write_text(yaml.safe_dump({"j": entry}), encoding="utf-8")
    return load_judges(file)["j"]


def test_defaults_are_those_of_a_judge(tmp_path: Path) -> None:
    judge = define(tmp_path)
    assert judge.decoding.model_dump() == {
        "temperature": 0.0,
        "top_p": 1.0,
        "max_tokens": 4096,
        "seed": None,
    }
    assert (judge.structured_output, judge.log_probabilities) == ("auto", "off")
    assert (judge.replicates, judge.price_per_million) == (1, None)


@pytest.mark.parametrize("word", ["on", "off", "auto"])
def test_yaml_may_read_switches_as_truth_values(word: str, tmp_path: Path) -> None:
    file = tmp_path / "judges.yaml"
    start = "j: {display_name: J, family: f, kind: openai, model: m, "
    file.write_text(f"{start}structured_output: {word}, log_probabilities: {word}}}")
    judge = load_judges(file)["j"]
    assert (judge.structured_output, judge.log_probabilities) == (word, word)


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"model": None}, ["needs the name of its 'model'"]),
        ({"decoding": {"temprature": 1}}, ["'decoding.temprature'", "mean 'temperature'"]),
        ({"decoding": {"max_tokens": 1}}, ["'decoding.max_tokens'", "found 1"]),
        ({"price_per_million": {"prompt": 1}}, ["lacks the key 'price_per_million.completion'"]),
        ({"price_per_million": {"prompt": -1, "completion": 0}}, ["price_per_million.prompt"]),
        ({"structured_output": "yes"}, ["'structured_output'", "'on', 'off' or 'auto'"]),
        ({"concurrency": 0}, ["'concurrency'", "found 0"]),
        ({"base_url": "gpu-host:8000"}, ["'base_url'", "VLLM_BASE_URL"]),
        ({"base_url": "https://user:hush-hush@host/v1"}, ["'base_url'", "credentials"]),
        ({"base_url": "https://host/v1?api-key=hush-hush"}, ["'base_url'", "a query"]),
        ({"api_key_env": "sk-hush-hush"}, ["'api_key_env'", "never belongs"]),
        ({"api_key_env": "hf_hushhush"}, ["'api_key_env'", "OPENAI_API_KEY"]),
        ({"api_key": "sk-hush-hush"}, ["'api_key'", "mean 'api_key_env'"]),
        ({"kind": "recorded", "concurrency": 4}, ["remove ['model', 'concurrency']"]),
    ],
)
def test_mistakes_name_file_key_and_remedy_but_no_key(
    fields: dict[str, Any], parts: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"judges\.yaml, line \d+: judge 'j'") as caught:
        define(tmp_path, **fields)
    assert [part for part in parts if part not in str(caught.value)] == []
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("slug", SERVED)
def test_shipped_served_judges_say_which_variable_is_missing(slug: str) -> None:
    judge = SHIPPED[slug]
    with pytest.raises(ValueError, match=f"judge '{slug}' reads its .* is not set; set [A-Z_]+"):
        answered(open_judge(judge, CORPUS), [Presentation("b", "AB", 0, "q", "1", "2", "x", "y")])


def test_what_asks_nobody_needs_no_key(tmp_path: Path) -> None:
    judge = define(tmp_path, base_url="http://127.0.0.1:9/v1", api_key_env="NOT_SET")
    assert was_probed(judge) is False
    fixed = judge.model_copy(update={"structured_output": "off"})
    assert dict(open_judge(fixed, CORPUS).identity)["model"] == "tiny"


def test_shipped_served_judges_open_once_the_variables_are_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in VARIABLES:
        monkeypatch.setenv(variable, "http://x/v1" if variable.endswith("URL") else KEY)
    assert len(SERVED) >= 3
    assert [bool(open_judge(SHIPPED[slug], CORPUS)) for slug in SERVED] == [True] * len(SERVED)


@pytest.mark.parametrize(
    ("fields", "variables", "expected"),
    [
        ({}, {"OPENAI_API_KEY": "k"}, Endpoint("https://api.openai.com/v1", "k")),
        (
            {},
            {"OPENAI_API_KEY": " k\n", "OPENAI_BASE_URL": "http://p/v1/"},
            Endpoint("http://p/v1", "k"),
        ),
        # the key to the hosted API goes nowhere else unless somebody says so
        (
            {"base_url": "http://h/v1"},
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://p/v1"},
            Endpoint("http://h/v1", "none"),
        ),
        (
            {"base_url": "MY_URL", "api_key_env": "MY_KEY"},
            {"MY_URL": "http://h", "MY_KEY": "k"},
            Endpoint("http://h", "k"),
        ),
    ],
)
def test_endpoints_and_keys_come_from_where_they_are_said_to(
    fields: dict[str, Any], variables: dict[str, str], expected: Endpoint
) -> None:
    assert find_endpoint("j", ServedFields(model="m", **fields), variables) == expected


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, "OPENAI_API_KEY, which is not set"),
        ({"OPENAI_API_KEY": " "}, "OPENAI_API_KEY, which is not set"),
        ({"OPENAI_API_KEY": "hush\nhush"}, "OPENAI_API_KEY holds characters"),
        ({"OPENAI_API_KEY": "hüsh"}, "OPENAI_API_KEY holds characters"),
        ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "hush"}, "OPENAI_BASE_URL is no endpoint"),
    ],
)
def test_bad_variables_are_named_and_not_shown(variables: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        find_endpoint("j", ServedFields(model="m"), variables).client(1.0)
    assert caught.value.__context__ is None
    assert "hush" not in str(caught.value)


def test_one_entry_and_one_variable_make_a_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Presentation("b", "AB", 0, "q", "one", "two", "x", "y")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-mine")
    with serving(FaultServer()) as server:
        monkeypatch.setenv("MY_URL", server.url)
        definition = define(tmp_path, base_url="MY_URL")
        (answer,) = answered(open_judge(definition, CORPUS), [shown])
    assert answer.text == judged(server.presentations[0])
    assert server.keys == {"Bearer none"}
    assert "openai-organization" not in server.headers


def test_every_failure_reaches_the_verdicts_with_its_class(tmp_path: Path) -> None:
    names = list(FINAL)
    battles = pd.DataFrame({"battle_id": names, "instruction": names}).assign(
        completion_a="one", completion_b="two", model_a="x", model_b="y"
    )

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return texts[0] if texts[1] == "one" else None  # order AB fails, BA answers

    with serving(FaultServer(fault)) as server:
        opened = open_judge(define(tmp_path, base_url=server.url), CORPUS)
        verdicts = annotate(opened, battles, slug="j")
    failed = verdicts[verdicts["order"].eq("AB")].set_index("battle_id")["status"]
    assert failed.to_dict() == {name: FINAL[name][0] for name in names}
    assert verdicts.loc[verdicts["order"].eq("BA"), "status"].eq("ok").all()
    assert verdicts["clarity_a"].notna().sum() == len(names)


def test_a_prompt_of_ones_own_replaces_the_rubric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.txt"
    own.write_text("{delimiter} {instruction} {first_completion} {second_completion} Go.")
    fields = {"base_url": "http://h/v1", "structured_output": "off"}
    plain = open_judge(define(tmp_path, **fields), CORPUS)
    changed = open_judge(define(tmp_path, template=str(own), **fields), CORPUS)
    assert plain.identity["template"] != changed.identity["template"]
    with pytest.raises(FileNotFoundError, match=r"absent\.txt.*'template'"):
        open_judge(define(tmp_path, template="absent.txt", **fields), CORPUS)


def test_a_named_server_that_moves_keeps_what_was_found_and_its_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path))
    fields = {"slug": "j", "display_name": "J", "family": "f", "kind": "openai", "model": "tiny"}
    with serving(FaultServer()) as server:
        here = JudgeDefinition(**fields, base_url=server.url, endpoint_name="ours")
        identity = dict(open_judge(here, CORPUS).identity)
    moved = JudgeDefinition(**fields, base_url="http://127.0.0.1:9/v1", endpoint_name="ours")
    assert was_probed(moved)
    assert dict(open_judge(moved, CORPUS).identity) == identity
    assert not was_probed(JudgeDefinition(**fields, base_url="http://127.0.0.1:9/v1"))
