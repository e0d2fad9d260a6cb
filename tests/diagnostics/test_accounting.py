import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.diagnostics.tables import MISSINGNESS_COLUMNS, UNKNOWN, account_for

MODELS = ("ant", "bee", "cat")
FATES = ("ok", "parse_error", "refusal", "context_overflow")


def battles_of(rows: list[tuple[str, str, str | None, int | None]]) -> pd.DataFrame:
    """Battles from (model_a, model_b, language, characters of either completion)."""
    texts = [None if n is None else "x" * n for *_, n in rows]
    return pd.DataFrame(
        {
            "battle_id": [f"b{k}" for k in range(len(rows))],
            "model_a": [row[0] for row in rows],
            "model_b": [row[1] for row in rows],
            "language": pd.Series([row[2] for row in rows], dtype="str"),
            "completion_a": pd.Series(texts, dtype="str"),
            "completion_b": pd.Series(texts, dtype="str"),
        }
    )


def verdicts_of(fates: dict[str, dict[str, list[str]]]) -> pd.DataFrame:
    """Verdicts from statuses by battle and order, one per replicate."""
    rows = [
        (battle, order, replicate, status)
        for battle, orders in fates.items()
        for order, statuses in orders.items()
        for replicate, status in enumerate(statuses)
    ]
    return pd.DataFrame(rows, columns=["battle_id", "order", "replicate", "status"])


def counts(account: pd.DataFrame, grouping: str) -> dict[tuple[str, str], tuple[int, int]]:
    rows = account[account["grouping"] == grouping]
    return {
        (level, status): (battles, verdicts)
        for level, status, battles, verdicts in rows[
            ["level", "status", "n_battles", "n_verdicts"]
        ].itertuples(index=False)
    }


OK = {"AB": ["ok"], "BA": ["ok"]}


def test_a_small_account_by_hand() -> None:
    battles = battles_of(
        [
            ("ant", "bee", "en", 5),
            ("bee", "cat", "en", 5),
            ("cat", "ant", None, 9),
            ("ant", "bee", "fr", 900),
        ]
    )
    verdicts = verdicts_of(
        {
            "b0": OK,
            "b1": {"AB": ["refusal"], "BA": ["parse_error"]},
            "b2": {"AB": ["ok"], "BA": ["refusal"]},
            "elsewhere": {"AB": ["truncated"]},
        }
    )
    account = account_for(battles, verdicts)
    assert tuple(account.columns) == MISSINGNESS_COLUMNS
    assert counts(account, "all") == {
        ("", "ok"): (1, 3),
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
        ("fr", "not_judged"): (1, 0),
    }
    assert counts(account, "length")["1800 to 1800 characters", "not_judged"] == (1, 0)
    assert list(account.loc[account["grouping"] == "length", "level"].unique()) == [
        "10 to 10 characters",
        "18 to 18 characters",
        "1800 to 1800 characters",
    ]


def test_a_corpus_without_texts_or_languages_has_no_such_groups() -> None:
    battles = battles_of([("ant", "bee", None, None)] * 3)
    account = account_for(battles, verdicts_of({"b0": {"mean": ["ok"]}, "b2": {"mean": ["ok"]}}))
    assert account["grouping"].unique().tolist() == ["all", "model"]
    assert counts(account, "all") == {("", "ok"): (2, 2), ("", "not_judged"): (1, 0)}


def test_battles_without_text_among_others_are_of_unknown_length() -> None:
    battles = battles_of([("ant", "bee", "en", 40), ("ant", "bee", "en", None)])
    account = account_for(battles, verdicts_of({"b0": OK, "b1": OK}))
    assert set(counts(account, "length")) == {("80 to 80 characters", "ok"), (UNKNOWN, "ok")}


@st.composite
def judged(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame]:
    pair = st.permutations(MODELS).map(lambda names: tuple(names[:2]))
    row = st.tuples(
        pair, st.sampled_from(["en", "fr", None]), st.one_of(st.none(), st.integers(0, 50))
    ).map(lambda told: (*told[0], *told[1:]))
    battles = battles_of(draw(st.lists(row, min_size=1, max_size=15)))
    statuses = st.lists(st.sampled_from(FATES), min_size=0, max_size=2)
    orders = st.fixed_dictionaries({"AB": statuses, "BA": statuses})
    ids = [*battles["battle_id"], "elsewhere"]
    return battles, verdicts_of({battle: draw(orders) for battle in ids})


@pytest.mark.slow
@given(tables=judged())
@settings(max_examples=60)
def test_classes_add_up_in_every_grouping_and_nothing_is_counted_twice(tables) -> None:
    battles, verdicts = tables
    account = account_for(battles, verdicts)
    asked = verdicts["battle_id"].ne("elsewhere").sum()
    for grouping, rows in account.groupby("grouping"):
        sides = 2 if grouping == "model" else 1
        assert rows["n_battles"].sum() == sides * len(battles)
        assert rows["n_verdicts"].sum() == sides * asked
        np.testing.assert_allclose(rows.groupby("level")["share"].sum(), 1.0)
    assert not account.duplicated(["grouping", "level", "status"]).any()
    assert account[["n_battles", "n_verdicts"]].sum(axis=1).gt(0).all()


@pytest.mark.slow
@given(tables=judged(), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_the_order_of_verdicts_does_not_matter(tables, seed: int) -> None:
    battles, verdicts = tables
    shuffled = verdicts.sample(frac=1, random_state=seed)
    pd.testing.assert_frame_equal(account_for(battles, shuffled), account_for(battles, verdicts))


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ValueError, match="order is 'CD'"):
        account_for(battles_of([("ant", "bee", "en", 1)]), verdicts_of({"b0": {"CD": ["ok"]}}))
