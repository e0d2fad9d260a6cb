"""Missing battles: one status each, an account that adds up, and chance over models."""

import math
import re
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.diagnostics import missing as module
from judgeline.diagnostics import battle_status, excess_p_values, length_bins
from judgeline.io import score_battles
from judgeline.report.judge_tables import COLUMNS
from judgeline.steps.missing import UNKNOWN, account_for

FATES = ("ok", "parse_error", "refusal", "truncated")


class Answer(NamedTuple):
    battle: int
    order: str
    replicate: int
    status: str


def statuses(answers: list[Answer], n_battles: int) -> list[str]:
    columns = [list(column) for column in zip(*answers, strict=True)] or [[], [], [], []]
    return battle_status(*columns, n_battles=n_battles).tolist()


def by_hand(answers: list[Answer], n_battles: int) -> list[str]:
    """The rule read aloud, one battle after the other."""
    found = []
    for battle in range(n_battles):
        failed: list[Answer] = []
        read = set()
        for order in ("AB", "BA", "mean"):
            own = sorted(a for a in answers if a.battle == battle and a.order == order)
            if any(answer.status == "ok" for answer in own):
                read.add(order)
            else:
                failed += own[:1]
        scored = {"AB", "BA"} <= read or "mean" in read
        found.append("ok" if scored else failed[0].status if failed else "not_judged")
    return found


ANSWERS = st.lists(
    st.builds(
        Answer,
        st.integers(0, 5),
        st.sampled_from(["AB", "BA", "mean"]),
        st.integers(0, 2),
        st.sampled_from(FATES),
    ),
    max_size=40,
    unique_by=lambda answer: answer[:3],
)


@given(answers=ANSWERS, random=st.randoms(use_true_random=False))
def test_every_battle_has_the_status_that_the_rule_read_aloud_gives(answers, random) -> None:
    expected = by_hand(answers, 7)
    random.shuffle(answers)
    assert statuses(answers, 7) == expected


# ------------------------------------------------------------------ length


@given(lengths=st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_bins_follow_the_order_of_lengths_and_never_part_equal_ones(lengths) -> None:
    bins = length_bins(lengths)
    for shorter, low in zip(lengths, bins, strict=True):
        for longer, high in zip(lengths, bins, strict=True):
            assert low <= high if shorter <= longer else low >= high
            assert low == high or shorter != longer
    assert set(bins.tolist()) == set(range(bins.max() + 1))
    assert bins.max() < 4
    quarters = length_bins([math.nan, *np.random.default_rng(1).permutation(41)])
    assert quarters[0] == -1
    assert sorted(np.bincount(quarters[1:])) == [10, 10, 10, 11]


# ------------------------------------------------------------------ chance


def exact_tail(missing: int, battles: int, all_missing: int, all_battles: int) -> Fraction:
    """Count the ways to choose which battles are missing."""
    ways = sum(
        math.comb(battles, k) * math.comb(all_battles - battles, all_missing - k)
        for k in range(missing, min(battles, all_missing) + 1)
    )
    return Fraction(ways, math.comb(all_battles, all_missing))


@given(data=st.data(), all_battles=st.integers(1, 60))
def test_one_models_chance_is_the_counted_one(data, all_battles: int) -> None:
    all_missing = data.draw(st.integers(0, all_battles))
    battles = data.draw(st.integers(0, all_battles))
    least = max(0, all_missing + battles - all_battles)
    missing = data.draw(st.integers(least, min(battles, all_missing)))
    found = excess_p_values([missing], [battles], all_missing=all_missing, all_battles=all_battles)
    assert found == pytest.approx([float(exact_tail(missing, battles, all_missing, all_battles))])


def test_holms_correction_by_hand() -> None:
    """Chances 1/66 and 1/3 of two models, and 1: times 3, 2 and 1, never falling."""
    together = excess_p_values([1, 2, 0], [2, 2, 4], all_missing=2, all_battles=12)
    assert together == pytest.approx([42 / 66, 3 / 66, 1.0])
    shunned = excess_p_values([20, 12, 8], [100, 150, 150], all_missing=20, all_battles=200)
    assert shunned[0] < 1e-4
    assert shunned[1:] == pytest.approx([1.0, 1.0])


def excess(missing: int, battles: int) -> np.ndarray:
    return excess_p_values([missing], [battles], all_missing=5, all_battles=10)


BAD_INPUT = {
    "order is 'ab' in row 0; expected AB, BA or mean": lambda: statuses([(0, "ab", 0, "ok")], 2),
    "battle is 2 in row 0; expected 0 to 1": lambda: statuses([(2, "AB", 0, "ok")], 2),
    "battle is -1 in row 0": lambda: statuses([(-1, "AB", 0, "ok")], 2),
    r"battle \(2,\), order \(1,\)": lambda: battle_status([0, 0], ["AB"], [0], ["ok"], n_battles=1),
    "3 of 2 battles missing in row 0": lambda: excess(3, 2),
    "6 of 8 battles missing in row 0": lambda: excess(6, 8),
    "1 of 11 battles missing in row 0": lambda: excess(1, 11),
    "-1 of 4 battles missing in row 0": lambda: excess(-1, 4),
}


@pytest.mark.parametrize("message", BAD_INPUT)
def test_impossible_input_is_refused_by_name(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BAD_INPUT[message]()


# ------------------------------------------------------------------ the account


def battles_of(*rows: tuple[str, str, str | None, int | None]) -> pd.DataFrame:
    """Battles from (model_a, model_b, language, characters of either completion)."""
    table = pd.DataFrame(rows, columns=["model_a", "model_b", "language", "length"])
    texts = pd.Series([None if pd.isna(n) else "x" * int(n) for n in table["length"]], dtype="str")
    return table.astype({"language": "str"}).assign(
        battle_id=[f"b{k}" for k in range(len(rows))], completion_a=texts, completion_b=texts
    )


def verdicts_of(fates: dict[str, dict[str, list[str]]]) -> pd.DataFrame:
    """Verdicts from statuses by battle and order, one per replicate."""
    rows = [
        (battle, order, replicate, status)
        for battle, orders in fates.items()
        for order, own in orders.items()
        for replicate, status in enumerate(own)
    ]
    return pd.DataFrame(rows, columns=["battle_id", "order", "replicate", "status"])


def counts(account: pd.DataFrame, grouping: str) -> dict[tuple[str, str], tuple[int, int]]:
    rows = account[account["grouping"] == grouping].set_index(["level", "status"])
    return {key: tuple(row) for key, row in rows[["n_battles", "n_verdicts"]].iterrows()}


OK = {"AB": ["ok"], "BA": ["ok"]}


def test_a_small_account_by_hand() -> None:
    battles = battles_of(
        ("ant", "bee", "en", 5),
        ("bee", "cat", "en", 5),
        ("cat", "ant", None, 9),
        ("ant", "bee", "fr", 900),
        ("ant", "bee", "fr", None),
    )
    failed = {"AB": ["refusal"], "BA": ["parse_error"]}
    half = {"AB": ["ok"], "BA": ["refusal"]}
    fates = {"b0": OK, "b1": failed, "b2": half, "b4": OK, "elsewhere": {"AB": ["truncated"]}}
    account = account_for(battles, verdicts_of(fates))
    assert account.columns.tolist() == COLUMNS["missingness"].split()
    assert counts(account, "all") == {
        ("", "ok"): (2, 5),
        ("", "refusal"): (2, 2),
        ("", "parse_error"): (0, 1),
        ("", "not_judged"): (1, 0),
    }
    assert counts(account, "model")["cat", "refusal"] == (2, 2)
    assert counts(account, "model")["cat", "ok"] == (0, 1)
    assert counts(account, "language") == {
        ("en", "ok"): (1, 2),
        ("en", "refusal"): (1, 1),
        ("en", "parse_error"): (0, 1),
        (UNKNOWN, "refusal"): (1, 1),
        (UNKNOWN, "ok"): (0, 1),
        ("fr", "ok"): (1, 2),
        ("fr", "not_judged"): (1, 0),
    }
    assert counts(account, "length")["1800 to 1800 characters", "not_judged"] == (1, 0)
    assert account.loc[account["grouping"] == "length", "level"].unique().tolist() == [
        *(f"{n} to {n} characters" for n in (10, 18, 1800)),
        UNKNOWN,
    ]


def test_a_corpus_without_texts_or_languages_has_no_such_groups() -> None:
    battles = battles_of(*[("ant", "bee", None, None)] * 3)
    account = account_for(battles, verdicts_of({"b0": {"mean": ["ok"]}, "b2": {"mean": ["ok"]}}))
    assert account["grouping"].unique().tolist() == ["all", "model"]
    assert counts(account, "all") == {("", "ok"): (2, 2), ("", "not_judged"): (1, 0)}


# ------------------------------------------------------------------ the asset and its checks


@pytest.fixture
def failing(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Three battles fail: two refused in one order, one unreadable in both."""
    fates = {
        ("battle-00", "AB"): "refusal",
        ("battle-01", "BA"): "refusal",
        ("battle-02", "AB"): "parse_error",
        ("battle-02", "BA"): "parse_error",
    }
    status = pd.Series(zip(verdicts["battle_id"], verdicts["order"], strict=True)).map(fates)
    marks = [column for column in verdicts if column[-2:] in ("_a", "_b")]
    lost = verdicts[marks].mask(status.notna())
    return verdicts.assign(status=status.fillna("ok"), **lost)


BREAKAGES = {
    "language": lambda t: t[~(t["grouping"].eq("language") & t["status"].eq("refusal"))],
    "as were scored": lambda t: t.assign(status=t["status"].replace("refusal", "ok")),
    "add up to the verdicts": lambda t: t.assign(n_verdicts=t["n_verdicts"] + 1),
    "ant (own=": lambda t: t.assign(level=t["level"].replace("ant", "bee")),
    "all (n_battles=3": lambda t: t[t["grouping"].ne("all") | t["status"].ne("ok")],
}


def test_battles_are_accounted_for(raw_battles, sampled_battles, failing) -> None:
    scored, account = score_battles(sampled_battles, failing), account_for(sampled_battles, failing)
    check = module.sums_result
    result = check(account, sampled_battles, failing, scored)
    assert result.passed
    assert (result.metadata["n_sampled"], result.metadata["n_missing"]) == (24, 3)
    rows = re.findall(r"\| (\w+) +\| +(\d+) \|", result.metadata["classes"].value)
    assert dict(rows) == {"ok": "21", "parse_error": "1", "refusal": "2"}
    for sentence, breakage in BREAKAGES.items():
        result = check(breakage(account), sampled_battles, failing, scored)
        assert (result.passed, result.severity.value) == (False, "ERROR")
        assert sentence in result.description
    assert not check(account, raw_battles.head(30), failing, scored).passed  # another sample
    assert not check(account, sampled_battles, failing, scored.head(20)).passed


def _account(*missing: int) -> pd.DataFrame:
    """200 battles, 100 per model, with some missing; each missing one is of two models."""
    rows = [
        ("model", model, status, n)
        for model, gone in zip(("ant", "bee", "cat", "dog"), missing, strict=True)
        for status, n in (("ok", 100 - gone), ("refusal", gone))
    ]
    total = sum(missing) // 2
    rows += [("all", "", "ok", 200 - total), ("all", "", "refusal", total)]
    table = pd.DataFrame(rows, columns=["grouping", "level", "status", "n_battles"])
    return table.assign(n_verdicts=0, share=0.0)


def test_a_model_that_is_shunned_is_named_with_the_remedy() -> None:
    assert module.chance_result(_account(5, 5, 6, 4)).passed
    assert module.chance_result(_account(0, 0, 0, 0)).passed
    result = module.chance_result(_account(10, 4, 3, 3))
    assert (result.passed, result.severity.value) == (False, "WARN")
    assert "ant (chance=" in result.description
    assert "bee" not in result.description
    assert "--retry CLASS" in result.description
