"""What `config/judges.yaml` may say about forms, and what it is told where it is wrong."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition, load_judges
from resources.judges.catalog import in_form, open_judge, prompt_of
from resources.judges.forms.choice import ChoiceForm, ChoiceOptions
from resources.judges.forms.form import Prompt
from resources.judges.forms.rubric import RUBRIC
from resources.judges.forms.score import ScoreForm, ScoreOptions
from resources.judges.judge import Presentation, call_identity, judge_key
from resources.judges.live.endpoint import Endpoint
from resources.judges.live.fields import ServedFields
from resources.judges.live.judge import ServedJudge, Site
from resources.judges.live.probe import Capabilities
from resources.judges.managed.judge import ManagedJudge
from resources.judges.managed.options import Hosting, VllmOptions
from resources.judges.simulated.judge import BuiltinTraits

CORPUS = CorpusDefinition(slug="c", display_name="C", reader="battles", location="nowhere")
TRAITS = dict.fromkeys(BuiltinTraits.model_fields, 0)
VLLM = {"display_name": "J", "family": "f", "kind": "vllm", "model": "tiny"}


@pytest.fixture(autouse=True)
def own_home(home: Path) -> None:
    """Nothing is remembered from elsewhere."""


def define(folder: Path, **fields: Any) -> JudgeDefinition:
    file = folder / "judges.yaml"
    file.write_text(yaml.safe_dump({"j": {**VLLM, **fields}}, sort_keys=False), encoding="utf-8")
    return load_judges(file)["j"]


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
    assert judge_key(served) == "3f678df1506673780017b795fc1ecfb4"
    assert call_identity(served, shown) == (
        "952f888fe635338647c54bbb9538bfa57d3b729199e90268fe9fefcfef101369"
    )
    assert judge_key(managed) == "411457bec19dab329ca43a24fbfed42e"
    assert call_identity(managed, shown) == (
        "e12554071484ac6e90a8bd4058209d15f5cd966b3c15e4e0c955b83a5f9dea93"
    )


def test_asking_for_more_forms_leaves_the_rubric_as_it_was(tmp_path: Path) -> None:
    plain = open_judge(define(tmp_path), CORPUS)
    more = define(tmp_path, asks=["rubric", "score", "choice"], score={"scale": [1, 9]})
    assert dict(open_judge(more, CORPUS).identity) == dict(plain.identity)
    assert dict(open_judge(more, CORPUS, form="choice").identity)["log_probabilities"] == "on"


def test_forms_have_defaults(tmp_path: Path) -> None:
    judge = define(tmp_path)
    assert judge.asks == ("rubric",)
    judge = define(tmp_path, asks=["choice", "score"])
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


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"asks": []}, ["line 6", "'asks'", "at least 1"]),
        ({"asks": ["scores"]}, ["line 6", "'asks.0'", "'rubric', 'score' or 'choice'"]),
        ({"asks": ["score", "score"]}, ["names a form twice", "name each once"]),
        ({"score": {"samples": 3}}, ["'score' has options but is not in 'asks'"]),
        ({"asks": ["score"], "score": {"scale": [9, 1]}}, ["line 9", "score.scale", "ascending"]),
        ({"asks": ["score"], "score": {"scale": [1, True]}}, ["score.scale"]),
        ({"asks": ["score"], "score": {"scale": [1]}}, ["score.scale"]),
        ({"asks": ["score"], "score": {"digits_per_token": 0}}, ["line 9", "digits_per_token"]),
        ({"asks": ["score"], "score": {"samples": 1}}, ["line 9", "score.samples", "found 1"]),
        ({"asks": ["choice"], "choice": {"sample": 3}}, ["choice.sample", "mean 'samples'"]),
        ({"asks": ["choice"], "log_probabilities": "off"}, ["each choice 10 times", "above 0"]),
        ({"kind": "recorded", "model": None, "asks": ["rubric"]}, ["remove ['asks']"]),
        (
            {"asks": ["score"], "score": {"structured": True}, "structured_output": "off"},
            ["remove one of the two"],
        ),
        (
            {"kind": "builtin", "model": None, "asks": ["choice"], "builtin": TRAITS}
            | {"choice": {"structured": True}},
            ["only served judges answer with JSON"],
        ),
    ],
)
def test_mistakes_name_line_key_and_remedy(
    fields: dict[str, Any], parts: list[str], tmp_path: Path
) -> None:
    given = {name: value for name, value in {**VLLM, **fields}.items() if value is not None}
    file = tmp_path / "judges.yaml"
    file.write_text(yaml.safe_dump({"j": given}, sort_keys=False), encoding="utf-8")
    with pytest.raises(ValueError, match=r"judges\.yaml, line \d+: judge 'j'") as caught:
        load_judges(file)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_a_judge_is_asked_in_no_other_form_than_its_own(tmp_path: Path) -> None:
    judge = define(tmp_path, asks=["score", "choice"])
    with pytest.raises(ValueError, match=r"add rubric to its asks.*score_verdicts\+ choice_verd"):
        open_judge(judge, CORPUS)
    with pytest.raises(ValueError, match=r"'choice' \(asks: \[rubric\]\)"):
        open_judge(define(tmp_path), CORPUS, form="choice")


def test_samples_may_be_wanted_where_they_can_differ(tmp_path: Path) -> None:
    judge = define(tmp_path, asks=["score"], log_probabilities="off", decoding={"temperature": 1.0})
    opened = open_judge(judge, CORPUS, form="score")
    assert opened.evidence == "samples"
    assert "alternatives" not in opened.identity
    by_tokens = open_judge(define(tmp_path, asks=["score"]), CORPUS, form="score")
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
def test_a_server_of_ours_is_asked_for_what_it_was_started_to_list(
    arguments: list[str], listed: str, tmp_path: Path
) -> None:
    judge = define(tmp_path, asks=["choice"], vllm={"extra_args": arguments})
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
def test_a_prompt_of_ones_own_must_show_and_say_all(
    form: Any, left_out: str, tmp_path: Path
) -> None:
    names = {
        "score": "delimiter instruction completion lowest highest",
        "choice": "delimiter instruction first_completion second_completion",
    }[form]
    whole = " ".join(f"{{{name}}}" for name in names.split())
    own = tmp_path / "own.txt"
    judge = define(tmp_path, asks=[form], **{form: {"template": str(own)}})
    own.write_text(whole, encoding="utf-8")
    assert prompt_of(judge, form).template == whole
    own.write_text(whole.replace(left_out, ""), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"own\.txt.*{re.escape(left_out)}"):
        open_judge(judge, CORPUS, form=form)


def test_shipped_prompts_ask_for_the_word_first(tmp_path: Path) -> None:
    judge = define(tmp_path, asks=["score", "choice"])
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
    judge = define(tmp_path, asks=asks, choice={"structured": True}, structured_output="on")
    wanted = {form: in_form(judge, form).structured_output for form in asks}
    assert wanted == {"rubric": "on", "score": "off", "choice": "on"}
    identities = {form: open_judge(judge, CORPUS, form=form).identity for form in asks}
    assert {form: one["structured_output"] for form, one in identities.items()} == {
        "rubric": "json_schema",
        "score": "none",
        "choice": "json_schema",
    }
