"""Identities are pinned, and the store beside this file, of 2026-11-22, answers without asking."""

import hashlib
import shutil
from pathlib import Path

import pandas as pd
import pytest
from answering import annotate
from buyer_process import numbered, store_in

from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.definition import BuiltinTraits
from judgeline.judges.forms.choice import ChoiceForm, ChoiceOptions
from judgeline.judges.forms.form import Form, Prompt
from judgeline.judges.forms.registered import FormName
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.forms.score import ScoreForm, ScoreOptions
from judgeline.judges.judge import Judge, call_identity, call_parts, judge_key
from judgeline.judges.live.endpoint import Endpoint
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.live.judge import ServedJudge, Site
from judgeline.judges.live.probe import Capabilities
from judgeline.judges.managed.judge import ManagedJudge
from judgeline.judges.managed.options import Hosting, VllmOptions
from judgeline.judges.options import Decoding
from judgeline.judges.presentation import Presentation
from judgeline.verdict import identity_hash, text_hash
from resources.arena.contestants import Contestant, write_completions
from resources.arena.judge import BuiltinJudge
from resources.arena.prompts import write_prompts

STORED = Path(__file__).with_name("verdicts_of_2026_11_22")
PROMPTS = write_prompts(6, seed=2)
TRAITS = BuiltinTraits(
    seed=3, noise=1.0, mood=0.3, taste=0.5, style_taste=0.2, position_bias=0.3,
    verbosity_bias=0.1, family_bias=0.5, malformed_rate=0, refusal_rate=0.25, truncated_rate=0,
)  # fmt: skip
TEMPLATE = "{delimiter} {instruction} {first_completion} {second_completion}"
DEFAULT: dict[FormName, Form] = {"rubric": RUBRIC, "score": ScoreForm(), "choice": ChoiceForm()}
FORMS: tuple[FormName, ...] = ("rubric", "score", "choice")


def completions(name: str, skill: float) -> tuple[str, ...]:
    return write_completions(Contestant(name, "aster", skill, 0.0, ""), PROMPTS, seed=0)


BATTLES = numbered(len(PROMPTS)).assign(
    question_id=[prompt.question_id for prompt in PROMPTS],
    instruction=[prompt.instruction for prompt in PROMPTS],
    model_a="one",
    model_b="two",
    completion_a=completions("one", 2.0),
    completion_b=completions("two", -1.0),
)


def simulated(form: FormName) -> Judge:
    judge, short = (TRAITS, "cedar", PROMPTS, "Grade both."), DEFAULT[form]
    if isinstance(short, ScoreForm | ChoiceForm):
        return BuiltinJudge(*judge, Prompt("Answer in a word.", short))
    return BuiltinJudge(*judge)


def served(form: FormName, *, structured: bool = False) -> Judge:
    fields = ServedFields(
        model="tiny",
        decoding=Decoding(temperature=0.5, seed=7),
        log_probabilities="off" if form == "rubric" else "auto",
        extra_body={"top_k": 5},
    )
    return ServedJudge(
        "j",
        fields,
        Prompt(
            TEMPLATE,
            {
                "rubric": RUBRIC,
                "score": ScoreForm(ScoreOptions(scale=(1, 9), structured=structured)),
                "choice": ChoiceForm(ChoiceOptions(structured=structured)),
            }[form],
        ),
        Site(
            Endpoint("https://endpoint.example/v1", "none"),
            Path("nowhere"),
            declared=Capabilities("max_tokens", True, True, 8192, 20),
        ),
    )


def managed(form: FormName) -> Judge:
    options = VllmOptions(max_model_len=8192, extra_args=("--seed", "1"))
    fields = ServedFields(model="tiny", log_probabilities="on")
    place = Hosting(logs=Path("nowhere"))
    return ManagedJudge("j", fields, options, Prompt(TEMPLATE, DEFAULT[form]), place)


JUDGES = {
    **{f"simulated {form}": simulated(form) for form in FORMS},
    **{f"served {form}": served(form) for form in FORMS},
    "served score in JSON": served("score", structured=True),
    "served choice in JSON": served("choice", structured=True),
    **{f"managed {form}": managed(form) for form in FORMS},
}
"""Judges whose identities are pinned."""

IDENTITIES = {
    "simulated rubric": ("09dbd3314fd1464e98d6149ca9770e06",
     "44c2c7f2bffb9ba8f76ce2bbda7b64ed482316b6d09cdf7f402d2a5824b3eea4"),
    "simulated score": ("a2f4bbfef6acc87cce381be99cd0b10c",
     "e9951326ebd631d147916241494a9bd1af6c927344716fab6f15fa3bffe5d0f8"),
    "simulated choice": ("5170774b37b0c09a5ea75451167ad479",
     "410d59147056b52d8f372ef0a40ca2f7e05602a41fb81b7e480d3f9aaec11ef7"),
    "served rubric": ("9dc74baef183e1629f9326e14580ba4a",
     "626c90f6e473c8c239c196cbff875b2b6afe9a95daf41d447154fe41527334ce"),
    "served score": ("fdb1124cec85a3953d15764c60396fbc",
     "68eda023fecb224c5248c72ccc284359ca5c9f7bc8499cb3361acdf79915679b"),
    "served choice": ("ad57574c3a1125f59f37c5651b88f382",
     "5024741a9a23a9f69a76f091b69bf5a31fa3847d19dbbec4f7b43fbc44331934"),
    "served score in JSON": ("17140a60db139e69c0e2fc46d75e12c7",
     "b6ea74538a3dc1faa8f0c5c3e3e8604e9bd31cd886610344b874a5e3c9ec3645"),
    "served choice in JSON": ("e1b3e17de73e74a23aa7f29e1e6e4ccb",
     "4ed21749167554bbb3459a058e55af262793fd7aa4ee0a61031f92beff930f59"),
    "managed rubric": ("8340558b63b6bdad5925a434d3a9f8f8",
     "8e2f193de5b75447c5fddebaa78144afc8daa94931e9bb497dbb8d5f8c365c46"),
    "managed score": ("2576466ddb25344997a098d26265fb2c",
     "774a08cee6a86100715fadd07cc460d2e2deabfa027a7aae51166a7a38e45410"),
    "managed choice": ("4a882bd5bc56fb2501294e1061d985d0",
     "c39c51b9d8801a716340523462842330f0e84241ab60bcd0d13e6be50ffe42ce"),
}  # fmt: skip
"""Key of each judge, and identity of its second call about `BATTLES`."""

ROWS = {
    "rubric": "d6cd7feff25b6b344e91fa14a34644576343c67cd30a8426b24f06b6545231a3",
    "score": "b97bcf3b9c3c8b73b10fc03824500b6ea79c5295c9fe52a5a3dce7931c1fc058",
    "choice": "1d061daa9ffc0da7250c30709ed6f24585a1bb21014d7f67d3300eaad5c579dd",
}
"""Hash of the rows that the older store gives in each form."""


@pytest.mark.parametrize("name", JUDGES)
def test_an_identity_never_changes(name: str) -> None:
    judge = JUDGES[name]
    shown = judge.form.present(BATTLES, 1)[1]
    assert (judge_key(judge), call_identity(judge, shown)) == IDENTITIES[name]


@pytest.mark.parametrize("text", ['"quoted" \\ \n', "\u00e9\u2028\U0001f600", "\ud800", ""])
def test_an_identity_hashes_the_parts_by_their_names(text: str) -> None:
    judge = JUDGES["served choice"]
    shown = Presentation("b", "AB", 3, text, f"{text}1", f"{text}2", "m", "n")
    texts = {"instruction": text, "first_completion": f"{text}1", "second_completion": f"{text}2"}
    own = {f"judge.{name}": value for name, value in judge.identity.items()}
    assert call_identity(judge, shown) == identity_hash({**own, **texts, "replicate": "3"})
    short = {name: text_hash(value) for name, value in texts.items()}
    assert call_parts(judge, shown) == {**own, **short, "replicate": "3"}


def rows_hash(table: pd.DataFrame) -> str:
    rows = table.to_json(orient="split", double_precision=9)
    return hashlib.sha256(rows.encode()).hexdigest()


def asked(form: FormName, buyer: Buyer) -> pd.DataFrame:
    return annotate(simulated(form), BATTLES, slug="sim", buyer=buyer)


@pytest.mark.parametrize("form", FORMS)
def test_an_older_store_answers_everything(tmp_path: Path, form: FormName) -> None:
    shutil.copytree(STORED, tmp_path / "verdicts")
    buyer = Buyer(store_in(tmp_path), Budget(0))
    table = asked(form, buyer)
    assert (buyer.account.n_asked, buyer.account.n_resumed) == (0, 12)
    assert {*table["status"]} == {"ok", "refusal"}
    assert table.pop("reasoning").isna().all()  # a column that the older store lacks
    assert rows_hash(table) == ROWS[form]
