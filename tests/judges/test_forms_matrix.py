"""Every form, asked of every kind of judge: what holds of the table whoever answered."""

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from answering import annotate
from batch_server import BatchServer, answered
from buyer_process import numbered, store_in
from fault_server import FaultServer, serving

from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.definition import BuiltinTraits, JudgeDefinition
from judgeline.judges.forms.form import Prompt, Reading, read
from judgeline.judges.forms.registered import FORM_TABLES, form_with
from judgeline.judges.judge import Evidence, Judge
from judgeline.judges.presentation import Answer, Presentation
from judgeline.tables.judging import FAILURES
from judgeline.tables.words import WORDS
from judgeline.verdict import CRITERIA
from resources.arena.contestants import Contestant, write_completions
from resources.arena.judge import BuiltinJudge
from resources.arena.prompts import write_prompts
from resources.config.corpora import CorpusDefinition
from resources.opening import open_judge

PROMPTS = write_prompts(6, seed=2)
SIDES = [
    write_completions(Contestant("sim-aster-1", "aster", skill, 0.0, ""), PROMPTS, seed=0)
    for skill in (50.0, -1.0)
]
BATTLES = numbered(len(PROMPTS)).assign(
    question_id=[prompt.question_id for prompt in PROMPTS],
    instruction=[prompt.instruction for prompt in PROMPTS],
    completion_a=SIDES[0],
    completion_b=SIDES[1],
)
MIRROR = {"model_a": "model_b", "completion_a": "completion_b"}
SWAPPED = BATTLES.rename(columns=MIRROR | {b: a for a, b in MIRROR.items()})
TRAITS = BuiltinTraits(
    **dict.fromkeys(BuiltinTraits.model_fields, 0) | {"seed": 3, "noise": 1.0, "position_bias": 1.0}
)
FLAWS = ("malformed_rate", "refusal_rate", "truncated_rate")


def graded(first: int, second: int) -> str:
    marks = zip(("response_1", "response_2"), (first, second), strict=True)
    return json.dumps({name: dict.fromkeys(CRITERIA, mark) for name, mark in marks})


def columns_of(form: str) -> list[str]:
    """The columns of an answer's numbers, which are null where it failed."""
    table = FORM_TABLES[form]
    own = table.columns[table.columns.index("status") : table.columns.index("answer")]
    return [name for name in own if table.dtypes[name] in ("float64", "Int64")]


class Recorded:
    """A judge that reads from a script, last presentation first."""

    evidence: Evidence = "log-probabilities"

    def __init__(self, form: str, says: str | None = None, **instead: Answer) -> None:
        self.form, self.instead = form_with(form), instead
        self.says = says or said_of_the_better(form)
        self.identity = {"kind": "recorded", **self.form.identity}

    def answer(
        self, presentations: Sequence[Presentation], _: Budget
    ) -> Iterator[tuple[int, Reading]]:
        plain = Answer(self.says, None, 11, 7)
        for position, one in reversed(list(enumerate(presentations))):
            answer = self.instead.get(f"{one.battle_id}{one.order}", plain)
            yield position, read(one, answer, self.form)


def simulated(form: str, family: str = "cedar", **traits: float) -> Judge:
    simulated = (TRAITS.model_copy(update=traits), family, PROMPTS, "Grade both.")
    if form == "rubric":
        return BuiltinJudge(*simulated)
    return BuiltinJudge(*simulated, Prompt("A word.", form_with(form)))


@functools.cache
def said_of_the_better(form: str) -> str:
    """What a judge without errors answers where the better text is shown first."""
    sure = simulated(form, noise=0.0, position_bias=0.0)
    ((_, reading),) = sure.answer(list(sure.form.present(BATTLES, 1))[:1], Budget())
    return str(reading.answer.text)


def served(form: str, server: FaultServer, **fields: Any) -> Judge:
    corpus = CorpusDefinition(slug="c", display_name="C", reader="battles", location="nowhere")
    judge = JudgeDefinition(
        slug="j",
        display_name="J",
        family="f",
        kind="openai",
        model="tiny",
        base_url=server.url,
        asks=list(FORM_TABLES),
        endpoint_name="here",
        batch_poll_s=0.01,
        **fields,
    )
    return open_judge(judge, corpus, form=form)


@pytest.fixture(params=FORM_TABLES)
def form(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server(form: str, home: Path) -> Iterator[BatchServer]:
    said = said_of_the_better(form)
    replying = BatchServer(answer=lambda body: said, line=lambda body: answered(body, said))
    with serving(replying):
        yield replying


@pytest.fixture(params=["recorded", "simulated", "live", "batch"])
def judge(request: pytest.FixtureRequest, form: str) -> Judge:
    if request.param in ("recorded", "simulated"):
        return {"recorded": Recorded, "simulated": simulated}[request.param](form)
    return served(form, request.getfixturevalue("server"), batch=request.param == "batch")


def key(table: pd.DataFrame) -> str:
    return "battle_id" if "battle_id" in table else "completion_id"


def test_a_table_is_as_declared_with_a_row_per_presentation_and_run(judge, form) -> None:
    table = annotate(judge, BATTLES, slug="j", n_replicates=2)
    for one in (table, annotate(judge, BATTLES.head(0), slug="j")):
        assert one.dtypes.astype(str).to_dict() == FORM_TABLES[form].dtypes
    if "completion_id" in table:
        runs = table.groupby("completion_id", sort=False)["replicate"].agg(list)
        assert runs.tolist() == [[0, 1]] * 2 * len(BATTLES)
        assert set(table["model"]) == {"x", "y"}
    else:
        shown = table[["battle_id", "replicate", "order"]].to_numpy().tolist()
        orders = [(run, order) for run in (0, 1) for order in ("AB", "BA")]
        assert shown == [[battle, *one] for battle in BATTLES["battle_id"] for one in orders]
    assert table["status"].eq("ok").all()
    assert table["judge"].eq("j").all()


def mirrored(table: pd.DataFrame) -> pd.DataFrame:
    """The same verdicts with the models exchanged, by what the words of the columns say."""
    sides = {"_a": "_b", "_b": "_a"}
    back = table.rename(columns=lambda name: name[:-2] + sides.get(name[-2:], name[-2:]))
    for name in table:
        meaning = WORDS[name][1]
        if meaning.startswith("A's share"):
            back[name] = 1 - table[name]
        elif "A minus B" in meaning:
            back[name] = -table[name]
    back["order"] = back["order"].map({"AB": "BA", "BA": "AB"})
    return back[table.columns]


def test_numbers_belong_to_the_models_whichever_was_shown_first(judge) -> None:
    """Battles with their sides swapped are the same presentations, and mirrored verdicts."""
    one, two = (annotate(judge, table, slug="j") for table in (BATTLES, SWAPPED))
    two = mirrored(two) if "order" in two else two
    by = [name for name in ("battle_id", "completion_id", "order") if name in one]
    one, two = (table.sort_values(by, ignore_index=True) for table in (one, two))
    pd.testing.assert_frame_equal(one, two)


def leads_of_a(table: pd.DataFrame) -> pd.DataFrame:
    """How far A is ahead in each battle and order, by every column that tells."""
    if "completion_id" in table:
        x, y = (table[table["model"].eq(name)].filter(regex="score$") for name in ("x", "y"))
        return x - y.to_numpy()
    sums = [table.filter(regex=f"_{side}$").sum(axis=1, skipna=False) for side in "ab"]
    meanings = {name: WORDS[name][1] for name in table}
    shares = [name for name, meaning in meanings.items() if meaning.startswith("A's share")]
    points = [name for name, meaning in meanings.items() if "A minus B" in meaning]
    leads = pd.concat([table[shares] - 0.5, table[points], sums[0] - sums[1]], axis=1)
    return leads.dropna(axis=1, how="all")


def test_a_model_whose_texts_are_better_is_ahead_in_both_orders(form: str) -> None:
    judge = simulated(form, noise=0.0, position_bias=0.0)
    leads = leads_of_a(annotate(judge, BATTLES, slug="j"))
    assert leads.size
    assert leads.gt(0).all(axis=None), leads.to_string()


def test_identity_says_what_was_asked_and_not_of_which_battle(judge) -> None:
    verdicts = annotate(judge, BATTLES, slug="j", n_replicates=2)
    assert verdicts["identity"].str.fullmatch(r"[0-9a-f]{64}").all()
    assert verdicts["identity"].is_unique
    renamed = BATTLES.assign(battle_id="again", model_a="p", model_b="q", question_id="other")
    again = annotate(judge, renamed, slug="t", n_replicates=2)
    said = ["identity", "answer"]
    pd.testing.assert_frame_equal(again[said], verdicts[said])


def test_nothing_is_bought_twice_and_no_form_answers_for_another(judge, form, tmp_path) -> None:
    buyer = Buyer(store_in(tmp_path))
    annotate(Recorded("rubric" if form != "rubric" else "choice"), BATTLES, slug="j", buyer=buyer)
    first = annotate(judge, BATTLES, slug="j", buyer=buyer)
    assert buyer.account.n_resumed == 0
    again = annotate(judge, BATTLES, slug="j", buyer=buyer)
    assert buyer.account.n_resumed == len(again)
    pd.testing.assert_frame_equal(again, first)
    assert len(buyer.store.judge_keys()) == 2


def test_an_answer_is_parsed_once_where_it_arrives(judge, monkeypatch, tmp_path) -> None:
    parsed, parse = [], type(judge.form).parse
    counted = lambda form, text: parsed.append(text) or parse(form, text)  # noqa: E731
    monkeypatch.setattr(type(judge.form), "parse", counted)
    buyer = Buyer(store_in(tmp_path))
    for _ in ("bought", "found in the store"):
        parsed.clear()
        assert annotate(judge, BATTLES, slug="j", buyer=buyer)["answer"].tolist() == parsed


def test_battles_without_text_are_refused_and_so_is_asking_never(judge) -> None:
    mute = BATTLES.assign(completion_b=[None, *SIDES[1][1:]])
    with pytest.raises(ValueError, match=r"1 of 6 battles have no text.*'b0'.*recorded"):
        annotate(judge, mute, slug="j")
    with pytest.raises(ValueError, match="n_replicates is 0"):
        annotate(judge, BATTLES, slug="j", n_replicates=0)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer("Well.", None, 1, 1), "parse_error"),
        (Answer("I cannot do that.", None, 1, 1), "refusal"),
        (Answer(None, None, 1, 0), "parse_error"),
        *((Answer(None, failure, 0, 0), failure) for failure in FAILURES),
        (Answer("said before it was cut", "truncated", 1, 1), "truncated"),
    ],
)
def test_a_failed_answer_keeps_its_class_and_its_words_and_has_no_numbers(form, answer, status):
    which = next(iter(form_with(form).present(BATTLES, 1)))
    table = annotate(
        Recorded(form, **{f"{which.battle_id}{which.order}": answer}), BATTLES, slug="j"
    )
    failed, others = table.iloc[0], table.iloc[1:]
    assert failed["status"] == status
    assert failed[columns_of(form)].isna().all()
    assert (None if pd.isna(failed["answer"]) else failed["answer"]) == answer.text
    assert others["status"].eq("ok").all()
    assert others[columns_of(form)[0]].notna().all()


@pytest.mark.parametrize("flaw", FLAWS)
def test_flaws_of_simulated_judges_come_at_their_rate(form: str, flaw: str) -> None:
    status = dict(zip(FLAWS, ("parse_error", "refusal", "truncated"), strict=True))[flaw]
    always = annotate(simulated(form, **{flaw: 1.0}), BATTLES, slug="j", n_replicates=5)
    assert set(always["status"]) == {status}
    assert always[columns_of(form)].isna().all(axis=None)
    assert always["answer"].str[:20].nunique() >= (5 if flaw == "malformed_rate" else 1)
    some = annotate(simulated(form, **{flaw: 0.3}), BATTLES, slug="j", n_replicates=10)
    n, n_failed = len(some), int(some["status"].eq(status).sum())
    assert n_failed == pytest.approx(0.3 * n, abs=4 * np.sqrt(0.21 * n))
    assert set(some["status"]) == {"ok", status}


def test_simulated_answers_depend_on_nothing_but_what_is_shown(form: str) -> None:
    asked = simulated(form)
    shown = list(asked.form.present(BATTLES, 2))
    answers = [answer for _, answer in asked.answer(shown, Budget())]
    alone = [dict(asked.answer([one], Budget()))[0] for one in shown]
    backwards = [answer for _, answer in asked.answer(shown[::-1], Budget())]
    assert answers == alone == backwards[::-1]
    others = simulated(form, seed=9), simulated(form, noise=0.9), simulated(form, family="fern")
    drawn = [[one.answer for _, one in other.answer(shown, Budget())] for other in others]
    later = [replace(one, replicate=one.replicate + 2) for one in shown]
    drawn.append([one.answer for _, one in asked.answer(later, Budget())])
    for others_said in drawn:
        same = [one.answer == other for one, other in zip(answers, others_said, strict=True)]
        assert sum(same) < len(shown) / 4


@pytest.mark.parametrize(
    ("surplus", "message"),
    [(-1, "left 1 of 12 presentations without an answer"), (1, "presentation 11 of 12 twice")],
)
def test_a_judge_that_loses_count_is_refused(form: str, surplus: int, message: str) -> None:
    judge = Recorded(form)

    def miscount(shown: Sequence[Presentation], budget: Budget) -> Any:
        answers = list(Recorded(form).answer(shown, budget))
        return (answers + answers)[: len(answers) + surplus]

    with pytest.raises(RuntimeError, match=message):
        annotate(
            SimpleNamespace(
                form=judge.form, evidence=judge.evidence, identity=judge.identity, answer=miscount
            ),
            BATTLES,
            slug="j",
        )


def test_the_oracle_of_orientation() -> None:
    marks = annotate(Recorded("rubric", graded(8, 3)), BATTLES.head(1), slug="j")
    assert marks[["clarity_a", "clarity_b"]].to_numpy().tolist() == [[8, 3], [3, 8]]
    assert marks["recorded_outcome"].isna().all()
    assert marks[["prompt_tokens", "completion_tokens"]].to_numpy().tolist() == [[11, 7]] * 2
    chosen = annotate(Recorded("choice", "A\nClearer."), BATTLES.head(1), slug="j")
    assert chosen["choice"].tolist() == [1.0, 0.0]


def test_batches_answer_what_is_answered_live(form: str, server: BatchServer) -> None:
    live = annotate(served(form, server), BATTLES, slug="j")
    n_live = len(server.presentations)
    batch = annotate(served(form, server, batch=True), BATTLES, slug="j")
    assert len(server.presentations) == n_live == server.submitted.total()
    pd.testing.assert_frame_equal(batch, live)
    assert batch["status"].eq("ok").all()
