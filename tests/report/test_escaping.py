"""Hostile names through every door: files, Markdown, JSON, the page and the terminal."""

import io
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from judgeline.report.escaping import in_csv, in_json, in_markdown, inert, shortened
from judgeline.report.grid import sort_key
from judgeline.terminal import leaderboard_table, machine_readable, plain_table

FORMULAS = ["=cmd|'/C calc'!A0", "+HYPERLINK(1)", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1"]
HOSTILE = [
    *FORMULAS, "red\x1b[31m\x1b]0;title\x07", "nul\0bel\x07csi\x9b31m",
    "turned \u202ecod.exe\u202c \u2066x\u2069\u200f", "tags\U000e0041\U000e0042",
    "a | b\n| --- |\nc\r\nd\u2028e", "<script>alert(1)</script>&lt;b>",
    "`code` **bold** _it_ [link](https://example.invalid) ![i](x)",
    "https://example.invalid www.example.invalid", "gpt-4.5",
]  # fmt: skip
ALLOWED = set("\n")


def board() -> pd.DataFrame:
    n = len(HOSTILE)
    return pd.DataFrame(
        {
            "judge": "careful",
            "rank": pd.array([*range(1, n), None], dtype="Int64"),
            "model": HOSTILE,
            "rating": np.linspace(-900.25, 1500, n),
            "lower": -np.inf,
            "human_rating": np.nan,
            "flags": "votes-wait;candidate",
        }
    )


def hidden(text: str) -> set[str]:
    """Characters that command a terminal or turn text around."""
    turning = {*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}
    tags = {c for c in text if 0xE0000 <= ord(c) < 0xE0080}
    controls = {c for c in text if ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000}
    return ({*text} & turning | tags | controls) - ALLOWED


@pytest.mark.parametrize("style", ["csv", "md", "json"])
def test_a_printed_leaderboard_commands_no_terminal(style: str) -> None:
    assert hidden(machine_readable(board(), style)) == set()


def test_csv_holds_no_formula_and_its_numbers_are_as_they_were() -> None:
    table = board()
    written = pd.read_csv(io.StringIO(machine_readable(table, "csv")))
    assert not written["model"].str.match(r"\s*[=+\-@\uff1d]").any()
    assert written["model"].str.startswith("'").sum() == len(FORMULAS)
    assert written["model"].iloc[-1] == "gpt-4.5"
    assert not written["model"].str.contains("[\t\r\n]").any()
    kept = table.drop(columns="model").to_csv(index=False)
    assert written.drop(columns="model").equals(pd.read_csv(io.StringIO(kept)))
    assert in_csv(table.drop(columns="model")) == kept


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=1e-300))
@example(0.15428128225416138)
def test_a_number_has_twelve_digits_in_csv_and_no_more(number: float) -> None:
    written = in_csv(pd.DataFrame({"beta": [number]})).split()[1]
    kept = float(written)
    assert Decimal(kept) == pytest.approx(Decimal(number), rel=Decimal("5.001e-12"))
    digits = Decimal(repr(kept)).normalize().as_tuple().digits
    assert len(digits) <= 12
    assert sort_key(number) == written


def test_markdown_cells_cannot_leave_their_table() -> None:
    lines = machine_readable(board(), "md").splitlines()
    assert len(lines) == 2 + len(HOSTILE)
    assert {line.count("|") for line in lines} == {board().shape[1] + 1}
    cells = [line.split("|")[3] for line in lines[2:]]
    assert not {*"<>`*_[]!"} & {*"".join(cells)}
    assert "://" not in "".join(cells)
    assert "www." not in "".join(cells)
    assert cells[-1].strip() == "gpt-4.5"


def test_names_that_look_like_numbers_stay_names() -> None:
    table = board().assign(model=["1e3", "007", *HOSTILE[2:]])
    assert "| 1e3 " in machine_readable(table, "md")
    assert "| 007 " in machine_readable(table, "md")


def test_json_loses_nothing() -> None:
    read = json.loads(machine_readable(board(), "json"))
    assert [row["model"] for row in read] == HOSTILE
    assert json.loads(in_json({"ü": "\x9b\u202e"})) == {"ü": "\x9b\u202e"}
    assert "ü" in in_json("ü")


def test_tables_in_a_terminal_hold_no_controls() -> None:
    out = io.StringIO()
    console = Console(file=out, width=400, force_terminal=False)
    rows = board().assign(method="soft", upper=1.0, n_battles=1, evidence="judge", judge_rating=1.0)
    console.print(leaderboard_table(rows, "title"))
    console.print(plain_table("", ["model"], [[name] for name in HOSTILE]))
    assert hidden(out.getvalue()) <= {"\t"}


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


def test_ordinary_words_stay_and_long_texts_say_how_much_is_left_out() -> None:
    assert shortened("x" * 1500, 100) == f"{'x' * 100}… (1,400 more characters)"
    assert inert("Grüße, 你好, שלום 👩\u200d🔬") == "Grüße, 你好, שלום 👩\u200d🔬"
    assert in_markdown("Grüße, 你好") == "Grüße, 你好"
