"""Scored battles from verdicts, coded battles from these, and tables from results."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.elo import VOTES_WAIT, HeldOutRatings, with_settled_votes
from judgeline.elo.battles import CodedBattles, code_battles
from judgeline.io.outcome_codes import COUNT, battles_by
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.tables.judging import SCORED_COLUMNS
from judgeline.verdict import (
    CRITERIA,
    criterion_difference,
    hard_outcome,
    mean_difference,
    sign_outcome,
)
from judgeline.winrate import (
    N_STRENGTHS,
    OutcomeTables,
    length_strata,
    strength_strata,
    tabulate_outcomes,
)

_MARKDOWN = r"(?m)^ {0,3}#{1,6} |^ *(?:[-*+]|\d+[.)]) |\*\*\S[^*\n]*\*\*|__\S[^_\n]*__"

_AMOUNTS: dict[str, Callable[[pd.Series], pd.Series]] = {
    "length": lambda texts: texts.str.len().astype("Int64"),
    "markdown": lambda texts: texts.str.count(_MARKDOWN).astype("Int64"),
}
STYLES = tuple(_AMOUNTS)
"""Amounts in a response, each in two columns such as ``length_a`` and ``length_b``: characters, and
headings, list items and bold phrases."""

LEAST_SHARE = 0.8
"""Judges and methods are compared on the battles that all of them scored. One that would leave the
others with a smaller share of theirs is left out."""

_ORDERS = ("AB", "BA", "mean")
_BLOCK = 1 << 18  # counted rows at a time


def score_battles(
    battles: pd.DataFrame, verdicts: pd.DataFrame, *, soft: bool = False
) -> pd.DataFrame:
    """Return the battles that a judge scored, with score differences and the hard outcome.

    A battle is scored if both orders have a parsed verdict, or if the publisher of the verdicts
    averaged them already (order ``mean``). Replicates are averaged within an order first. Plain
    verdicts, wins and ties without rubric scores, count as score differences of 1, 0 and -1, and
    `soft` ones, probabilities of a win, as numbers between these.

    The table has `SCORED_COLUMNS` in the order of `battles`: differences are A minus B in rubric
    points, outcomes A's share of the win, lengths characters, null without text. Verdicts that
    failed, or on other battles, do not count.

    Raises
    ------
    ValueError
        If verdicts of several judges, of an unknown order, or with a missing or impossible score
        come in, some verdicts of the judge have scores and others outcomes alone, an outcome
        without scores is no win, tie or loss, or a battle has both an averaged verdict and single
        orders.
    """
    _require_one_judge(verdicts)
    parsed = verdicts[verdicts["status"].eq("ok")]
    by_order = _differences(parsed, soft=soft)
    by_order = by_order.reindex(battles["battle_id"])
    both = by_order[["AB", "BA"]].notna().all(axis=1).to_numpy()
    published = by_order["mean"].notna().to_numpy()
    _require_one_form(by_order)
    score = np.full(len(battles), np.nan)
    outcome = np.full(len(battles), np.nan)
    first, second, mean = (by_order[order].to_numpy() for order in _ORDERS)
    score[both] = mean_difference(first[both], second[both])
    outcome[both] = hard_outcome(first[both], second[both])
    score[published] = mean[published]
    outcome[published] = sign_outcome(mean[published])
    recorded = verdicts.groupby("battle_id", sort=False)["recorded_outcome"].mean()
    table = battles.assign(
        category=battles.get("category"),  # battles of candidates have none
        score_difference=score,
        judge_outcome=outcome,
        recorded_outcome=recorded.reindex(battles["battle_id"]).to_numpy(),
        difference_ab=first,
        difference_ba=second,
        **{
            f"{style}_{side}": amount(battles[f"completion_{side}"].astype("string"))
            for style, amount in _AMOUNTS.items()
            for side in "ab"
        },
    )
    return table.loc[both | published, list(SCORED_COLUMNS)].reset_index(drop=True)


def turned(
    battles: pd.DataFrame, exchanged: NDArray[np.bool_] | None = None
) -> tuple[pd.DataFrame, pd.Series]:
    """Return battles whose first model by name is A, and which had to be turned for that.

    Where `exchanged` says which battles to turn, these are turned.
    """
    swap = battles["model_a"].gt(battles["model_b"])
    if exchanged is not None:
        swap = pd.Series(exchanged, index=battles.index)
    sides = [("model_a", "model_b"), *((f"{style}_a", f"{style}_b") for style in STYLES)]
    others = {
        one: battles[two] for pair in sides for one, two in (pair, pair[::-1]) if one in battles
    }
    if "difference_ab" in battles:
        others["difference_ab"] = -battles["difference_ba"]
        others["difference_ba"] = -battles["difference_ab"]
    for name in ("human_outcome", "judge_outcome", "recorded_outcome"):
        if name in battles:
            others[name] = 1 - battles[name]
    others["score_difference"] = -battles["score_difference"]
    return battles.assign(
        **{one: battles[one].mask(swap, two) for one, two in others.items()}
    ), swap


def by_question(scored: pd.DataFrame) -> pd.DataFrame:
    """Return scored battles named by question and models, the first model by name being A.

    Files of several judges without a ``battle_id`` have the same battles under these names.
    """
    table, _ = turned(scored)
    keys = ["question_id", "model_a", "model_b"]
    unclear = table["question_id"].isna() | table.duplicated(keys, keep=False)
    if unclear.any():
        raise ValueError(
            f"{int(unclear.sum())} of {len(table)} battles cannot be told apart: they have no "
            "battle_id, and no question_id, or the same question and models as another; add a "
            "battle_id"
        )
    return table.assign(battle_id=table[keys].astype(str).agg("\0".join, axis=1))


def common_battles(scored: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the battles that all judges scored, in one order, by judge.

    Judges come by the number of battles they scored; one that would leave less than 80 % of the
    first one's to all is left out. A battle is the same if its models and its vote are. ValueError
    if a judge has battles without a ``battle_id``, or one twice.
    """
    keyed = {}
    for name, table in scored.items():
        vote = table["human_outcome"].astype("float64").fillna(-1.0)
        wrong = table["battle_id"].isna() | table["battle_id"].duplicated()
        if wrong.any():
            raise ValueError(f"{name}: {int(wrong.sum())} battles have no battle_id of their own")
        columns = table[["battle_id", "model_a", "model_b"]].assign(vote=vote)
        keyed[name] = table.set_index(pd.MultiIndex.from_frame(columns))
    order = sorted(keyed, key=lambda name: (-len(keyed[name]), name))
    common, kept = pd.Index([]), list[str]()
    for name in order:
        shared = common[common.isin(keyed[name].index)] if kept else keyed[name].index
        if len(shared) >= LEAST_SHARE * len(keyed[order[0]]):
            common, kept = shared, [*kept, name]
    return {name: keyed[name].loc[common].reset_index(drop=True) for name in kept}


def _differences(parsed: pd.DataFrame, *, soft: bool) -> pd.DataFrame:
    """Return the score difference by battle and order, replicates averaged, NaN where none."""
    keyed = parsed[["battle_id", "order"]].assign(difference=verdict_differences(parsed, soft=soft))
    means = keyed.pivot_table("difference", "battle_id", "order", aggfunc="mean")
    return means.reindex(columns=list(_ORDERS)).astype(float)


def verdict_differences(parsed: pd.DataFrame, *, soft: bool = False) -> NDArray[np.float64]:
    """Return the score of A minus the score of B of verdicts of one judge that parsed."""
    bare = _without_scores(parsed)
    if bare.any():
        _require_plain(parsed, bare, soft=soft)
        plain: NDArray[np.float64] = 2 * parsed["recorded_outcome"].to_numpy(dtype=float) - 1
        return plain
    scores_a, scores_b = (
        parsed[[f"{criterion}_{side}" for criterion in CRITERIA]].to_numpy(dtype=float)
        for side in "ab"
    )
    return criterion_difference(scores_a, scores_b)


def are_plain(verdicts: pd.DataFrame) -> bool:
    """Return whether the outcomes of a judge are plain: no rubric scores, no probabilities."""
    known = verdicts[verdicts["recorded_outcome"].notna()]
    plain = _without_scores(known) & _wins_or_ties(known)
    return bool(len(known) and plain.all())


def _without_scores(parsed: pd.DataFrame) -> pd.Series:
    scores = parsed[list(SCORE_COLUMNS)]
    return scores.isna().all(axis=1) & parsed["recorded_outcome"].notna()


def _wins_or_ties(parsed: pd.DataFrame) -> pd.Series:
    """Return which outcomes are 1, 0.5 or 0, or the mean of two of these."""
    return (parsed["recorded_outcome"].astype(float) * 4).isin(range(5))


def _require_one_judge(verdicts: pd.DataFrame) -> None:
    judges = sorted(verdicts["judge"].unique())
    if len(judges) > 1:
        raise ValueError(f"verdicts of {len(judges)} judges, {judges}; score one judge at a time")
    orders = sorted(set(verdicts["order"].unique()) - set(_ORDERS))
    if orders:
        raise ValueError(f"unknown orders {orders} in the verdicts; expected {list(_ORDERS)}")


def _require_plain(parsed: pd.DataFrame, bare: pd.Series, *, soft: bool) -> None:
    counts = f"{int(bare.sum())} of {len(parsed)} of judge {parsed['judge'].iloc[0]!r}"
    if not bare.all():
        raise ValueError(
            f"these verdicts carry outcomes without rubric scores: {counts}. The others have "
            "scores, and one slope cannot fit both kinds; name two judges (column judge of "
            "verdicts.parquet), or leave one kind out"
        )
    if not soft and not (whole := _wins_or_ties(parsed)).all():
        outcome = parsed.loc[~whole, "recorded_outcome"].iloc[0]
        raise ValueError(
            f"these verdicts carry outcomes without rubric scores: {counts}. One is {outcome:g}, "
            "and only wins (1), ties (0.5) and losses (0) stand for differences. Probabilities "
            "are enough for reference_ratings alone; have a judge with the rubric read the battles"
        )


def _require_one_form(by_order: pd.DataFrame) -> None:
    mixed = by_order["mean"].notna() & by_order[["AB", "BA"]].notna().any(axis=1)
    if mixed.any():
        raise ValueError(
            f"{int(mixed.sum())} battles have both an averaged verdict and single orders, the "
            f"first is {mixed.index[mixed][0]!r}; keep one of the two"
        )


# What the estimators read, and their results as tables

RANKS = ("rank", "best_rank", "worst_rank")


def as_table(columns: NamedTuple) -> pd.DataFrame:
    """Return a result of the core as a table with one column per field.

    Places that a model without a rating does not have are null, not numbers.
    """
    table = pd.DataFrame(columns._asdict())
    places = [name for name in RANKS if name in table]
    return table.astype(dict.fromkeys(places, "Int64"))


def as_numbers(column: pd.Series) -> np.ndarray[Any, Any]:
    """Return a column as floats, shape (n,), with NaN where a cell is null."""
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))


def by_score(scored_battles: pd.DataFrame) -> pd.DataFrame:
    """Return scored battles; of counted ones a row for each vote and score difference alone."""
    if COUNT not in scored_battles:
        return scored_battles
    keys = ["human_outcome", "score_difference"]
    sides = [scored_battles[key].astype("category").cat for key in keys]
    values = [np.append(side.categories.to_numpy(float), np.nan) for side in sides]
    shape, counts = tuple(map(len, values)), scored_battles[COUNT].to_numpy()
    total = np.zeros(shape, dtype=np.int64)
    for first in range(0, counts.size, _BLOCK):
        part = slice(first, first + _BLOCK)
        codes = [side.codes.to_numpy()[part].astype(np.intp) for side in sides]  # null is -1
        np.add.at(total, tuple(codes), counts[part].astype(np.int64))
    places = np.nonzero(total)
    known = {key: own[place] for key, own, place in zip(keys, values, places, strict=True)}
    return pd.DataFrame({**known, COUNT: total[places]})


def as_coded(
    scored_battles: pd.DataFrame, hard_outcome: str, *, every_vote: bool = False
) -> CodedBattles:
    """Return scored battles as coded battles, without the votes on models with too few.

    Models with too few votes count as models without, unless `every_vote` counts: `settled_models`
    says from when on. `hard_outcome` is ``"derived"`` from the scores, or ``"recorded"`` as the
    publisher of the verdicts states it; a battle without one is then a ValueError.
    """
    column = {"derived": "judge_outcome", "recorded": "recorded_outcome"}[hard_outcome]
    outcome, human_outcome = (  # halves and quarters, exact in the smaller type
        scored_battles[name].to_numpy(dtype=np.float32, na_value=np.nan)
        for name in (column, "human_outcome")
    )
    if np.isnan(outcome).any():
        battle = scored_battles["battle_id"].iloc[int(np.argmax(np.isnan(outcome)))]
        raise ValueError(
            f"{int(np.isnan(outcome).sum())} of {outcome.size} scored battles have no {column}, "
            f"the first is {battle!r}; set 'hard_outcome: derived' for this corpus"
        )
    coded = code_battles(
        scored_battles["model_a"].astype("category"),
        scored_battles["model_b"].astype("category"),
        human_outcome=human_outcome,
        judge_outcome=outcome,
        score_difference=as_numbers(scored_battles["score_difference"]),
        count=scored_battles.get(COUNT),
    )
    return coded if every_vote else with_settled_votes(coded)


def questions_of(scored_battles: pd.DataFrame) -> np.ndarray[Any, Any] | None:
    """Return the unit of dependence of each battle as a number: its session, question, or itself.

    None where no two battles share one, where all do, and of counted battles, which have none:
    battles then are taken as independent. Numbers are in the order of the names.
    """
    if COUNT in scored_battles or "question_id" not in scored_battles:
        return None
    unit = scored_battles["question_id"]
    if "cluster_id" in scored_battles:
        unit = scored_battles["cluster_id"].fillna(unit)
    codes, names = pd.factorize(unit, sort=True)
    lacks = codes < 0
    if len(names) < 2 or len(names) == (~lacks).sum():
        return None
    codes[lacks] = len(names) + np.arange(lacks.sum())
    return np.asarray(codes)


def as_outcome_tables(
    scored_battles: pd.DataFrame, hard_outcome: str, by: str = ""
) -> OutcomeTables | None:
    """Return scored battles counted as win rates read them.

    They are counted in strata by ``"length"`` or ``"strength"``; None where lengths lack.
    """
    coded = as_coded(scored_battles, hard_outcome)
    options: dict[str, Any] = {}
    if by:
        lengths = (as_numbers(scored_battles[f"length_{side}"]) for side in "ab")
        strata = length_strata(*lengths) if by == "length" else strength_strata(coded)
        if strata is None:
            return None
        n_strata = 2 if by == "length" else N_STRENGTHS
        options = {"stratum_a": strata[0], "stratum_b": strata[1], "n_strata": n_strata}
    question = scored_battles["question_id"].fillna(scored_battles["battle_id"])
    return tabulate_outcomes(coded, question.to_numpy(dtype=str), **options)


def with_waiting_votes(ratings: HeldOutRatings, waiting: Collection[str]) -> HeldOutRatings:
    """Return ratings that say of some models that their votes wait, not that there are none."""
    waits = np.isin(ratings.model, list(waiting))
    flags = [
        old.replace("no-votes", VOTES_WAIT) if wait else old
        for old, wait in zip(ratings.flags.tolist(), waits.tolist(), strict=True)
    ]
    return ratings._replace(flags=np.array(flags, dtype=str))


def with_flags(ratings: HeldOutRatings, flags: Mapping[str, str]) -> HeldOutRatings:
    """Return ratings with one more flag, after the others, of each model that has one."""
    rows = zip(ratings.model.tolist(), ratings.flags.tolist(), strict=True)
    joined = [";".join(filter(None, (old, flags.get(model)))) for model, old in rows]
    return ratings._replace(flags=np.array(joined, dtype=str))


def votes_that_wait(scored_battles: pd.DataFrame, coded: CodedBattles) -> dict[str, int]:
    """Return how many votes there are on each model that has too few of them to count."""
    if coded.voted_models().all():
        return {}
    voted = scored_battles[scored_battles["human_outcome"].notna()]
    ends = pd.concat([voted["model_a"], voted["model_b"]], ignore_index=True)
    votes = battles_by(ends, pd.concat([voted.filter([COUNT])] * 2, ignore_index=True))
    counted = set(np.array(coded.models)[coded.voted_models()].tolist())
    return {str(name): int(n) for name, n in votes.items() if name not in counted}
