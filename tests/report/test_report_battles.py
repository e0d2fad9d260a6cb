"""The battle browser: whose battles, whose side, how much, and nothing that runs."""

import pandas as pd
import pytest
from test_report_page import Page, write
from test_report_tables import HOSTILE, SCRIPT, example_battles, example_judge

from judgeline.report.browser import MOST_PER_PAGE, MOST_TEXT, browser_of
from judgeline.report.evidence import evidence_of, strongest
from judgeline.report.inert import inert, shortened
from judgeline.verdict.outcomes import CRITERIA

INFLUENCES = pd.DataFrame(
    {
        "model": ["ant"] * 5 + ["bee"],
        "battle_id": ["b1", "b2", "b3", "b4", "b5", "b1"],
        "opponent": ["bee"] * 5 + ["ant"],
        "outcome": [0.9, 0.8, 0.1, 0.5, 0.5, 0.2],
        "expected": 0.5,
        "influence": [3.0, 2.0, -4.0, 1.0, 0.0, -3.0],
        "is_candidate": False,
    }
)


def scores(a: float, b: float) -> dict[str, float]:
    return {f"{name}_{side}": mark for side, mark in (("a", a), ("b", b)) for name in CRITERIA}


def test_the_strongest_each_way_come_first_and_those_without_influence_never() -> None:
    chosen = strongest(INFLUENCES, 2)
    assert chosen["battle_id"].tolist() == ["b1", "b2", "b3", "b1"]
    assert chosen["model"].tolist() == ["ant", "ant", "ant", "bee"]


def test_evidence_is_told_from_the_models_side() -> None:
    battles = pd.DataFrame(
        {
            "battle_id": ["b1"],
            "model_a": ["ant"],
            "model_b": ["bee"],
            "human_outcome": [1.0],
            "instruction": ["Say it."],
            "completion_a": ["It."],
            "completion_b": ["Else."],
            "language": ["en"],
        }
    )
    verdicts = pd.DataFrame(
        [
            {"battle_id": "b1", "order": "BA", "status": "refusal", "answer": None},
            {"battle_id": "b1", "order": "AB", "status": "ok", "answer": "{}", **scores(9, 4)},
        ]
    ).assign(replicate=0, identity="f" * 64, prompt_tokens=pd.NA, completion_tokens=7)
    ant, bee = evidence_of(INFLUENCES.iloc[[0, 5]], battles, verdicts)
    assert (ant.completion, ant.opponent_completion, ant.human_outcome) == ("It.", "Else.", 1.0)
    assert (bee.completion, bee.opponent_completion, bee.human_outcome) == ("Else.", "It.", 0.0)
    assert [r.difference for r in ant.readings] == [5.0, None]
    assert [r.difference for r in bee.readings] == [-5.0, None]
    assert [r.shown_first for r in ant.readings] == ["ant", "bee"]
    assert [r.shown_first for r in bee.readings] == ["ant", "bee"]
    assert ant.readings[1].status == "refusal"
    assert (ant.readings[0].prompt_tokens, ant.readings[0].completion_tokens) == (None, 7)


def test_a_battle_without_text_or_answers_is_still_told() -> None:
    (one,) = evidence_of(INFLUENCES.iloc[[0]], INFLUENCES.head(0), INFLUENCES.head(0))
    assert one.instruction is None
    assert one.readings == ()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb\rc\u2028d\te", "a\nb\nc\nd\te"),
        ("\x1b[31m\x00\x9b", "�[31m��"),
        ("\u202eabc\u2066", "�abc�"),
        ("tag\U000e0041", "tag�"),
        ("naïve 新模型 👩‍👩‍👧 a\u00a0b", "naïve 新模型 👩‍👩‍👧 a\u00a0b"),
        (float("nan"), "nan"),
    ],
)
def test_what_commands_or_hides_becomes_a_visible_mark(text: object, shown: str) -> None:
    assert inert(text) == shown


def test_long_texts_say_how_much_is_left_out() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("x" * 1500, 100) == f"{'x' * 100}… (1,400 more characters)"


def test_every_model_has_its_strongest_battle_before_any_has_a_second() -> None:
    battles = example_battles(models=3)
    whole = browser_of(battles)
    assert len(whole.cards) == len(battles) == 12
    assert len(whole.sentences) == 1
    room = sum(card.size for card in whole.cards) // 2
    half = browser_of(battles, room=room)
    assert half.models == whole.models
    assert {c.influence for c in half.cards} == {"+1.50", "−1.75"}
    assert f"{len(half.cards)} of 12 such battles are shown" in half.sentences[1]
    assert sum(card.size for card in half.cards) <= room
    assert browser_of([]) is None


def test_a_page_stays_bounded_however_much_there_is(tmp_path) -> None:
    many = [*example_battles(models=14)] * 60
    tables = example_judge()
    object.__setattr__(tables, "battles", many)
    few = len(write(tmp_path / "few.html", [example_judge()], comparison=None))
    full = len(write(tmp_path / "full.html", [tables], comparison=None))
    assert full - few < 1.2 * MOST_PER_PAGE  # escapes take a little more than what they stand for
    assert len(many) * MOST_TEXT > 2 * MOST_PER_PAGE  # so that there was something to leave out


def test_hostile_texts_are_text_on_the_page(tmp_path) -> None:
    html = write(tmp_path / "report.html", [example_judge()], comparison=None)
    page = Page(html)
    assert page.tags.count("script") == 1
    assert not {"img", "iframe", "object", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [value for _, value in page.attributes if "javascript:" in value]
    assert any(HOSTILE[0] in text for text in page.texts)
    assert not {"\x1b", "\x00", "\u202e", "\U000e0041"} & set(html)
    assert "1\u2009000 more" not in html
    assert "… (1,000 more characters)" in html
    assert SCRIPT in page.texts


def test_a_withheld_judge_has_no_battles_on_the_page(tmp_path) -> None:
    tables = example_judge()
    board = tables.leaderboard.assign(flags="withheld: kappa 0.05 < 0.20")
    object.__setattr__(tables, "leaderboard", board)
    told = {"asset": "attack_controls", "name": "controls_stay_low", "passed": False}
    told |= {"observed": "null-model is rated 1777 Elo", "remedy": ""}
    object.__setattr__(tables, "checks", pd.concat([tables.checks, pd.DataFrame([told])]))
    html = write(tmp_path / "report.html", [tables], comparison=None)
    assert 'class="battle"' not in html
    assert "1777" not in html
    object.__setattr__(tables, "leaderboard", board.assign(flags=""))
    assert "1777" in write(tmp_path / "other.html", [tables], comparison=None)
