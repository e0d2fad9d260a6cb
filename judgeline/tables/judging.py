"""Declared tables of judging: answers by form, and scored battles."""

import numpy as np
import pandas as pd

from judgeline.elo import connected_components, cut_models
from judgeline.tables.corpus import RECORDED_VERDICTS, REPLY_DTYPES, SCORE_COLUMNS
from judgeline.tables.ids import is_among
from judgeline.tables.remedies import reasons_of, remedies_text
from judgeline.tables.rules import Rule, among, has_columns, holds, known, n_rows, unique, within
from judgeline.tables.schema import Check, Table, stops, table, warns

FAILURES = (
    "parse_error", "echo", "refusal", "truncated", "context_overflow", "transport",
    "content_filter", "tool_call", "other_model", "rejected", "unreadable_reply",
)  # fmt: skip
"""Every class of a failed answer; the status of any other is ``ok``."""

_SCORED = (
    "battle_id question_id cluster_id model_a model_b language category human_outcome "
    "score_difference judge_outcome recorded_outcome difference_ab difference_ba length_a length_b "
    "markdown_a markdown_b"
)
SCORED_COLUMNS: tuple[str, ...] = tuple(_SCORED.split())
"""Columns of the scored battles."""

MIN_PARSED = 0.5
WARN_PARSED = 0.95
_WARN_JUDGED = 0.95
_MIN_AGREEMENT = 0.5
_LEAST_COVERED = 0.5
_WARN_COVERED = 0.95
_SLACK = 1e-6  # of sums of probabilities

_CALL = ["battle_id", "order", "replicate"]
_STATUS = among("status", ("ok", *FAILURES))
_ORDER = among("order", ["mean", "AB", "BA"])
_ONCE = "a presentation has one verdict per replicate"


def parse_check(name: str, guards: str, least: float = WARN_PARSED, *, asked: bool = True) -> Check:
    """Return the check that answers were read; a table not `asked` for may be empty."""

    def rates(verdicts: pd.DataFrame) -> pd.DataFrame:
        counts = verdicts["status"].value_counts()
        said = ", ".join(f"{status} {count}" for status, count in counts.items())
        rate = float(verdicts["status"].eq("ok").mean()) if len(verdicts) else 0.0
        table = pd.DataFrame({"statuses": [said or "no verdicts"], "parsed": [rate]})
        return table if asked or len(verdicts) else table.head(0)

    return Check(
        name,
        guards,
        [within("parsed", least, note=f"at least {least:.0%} of answers parse")],
        remedy=lambda verdicts: remedies_text(reasons_of(verdicts[verdicts["status"].ne("ok")])),
        blocking=least <= MIN_PARSED,
        warns=least > MIN_PARSED,
        rows=rates,
        ids=["statuses"],
    )


def _marks(verdicts: pd.DataFrame) -> pd.DataFrame:
    return verdicts.reindex(columns=list(SCORE_COLUMNS))


def _surplus_marks(verdicts: pd.DataFrame) -> pd.Series:
    marks = _marks(verdicts)
    bare = marks.isna().all(axis=1) & verdicts["recorded_outcome"].notna()
    expected = np.where(verdicts["status"].eq("ok") & ~bare, marks.shape[1], 0)
    return marks.notna().sum(axis=1) - expected


def _orders_shown(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return each replicate of a battle, and whether it was shown in both orders."""
    replicate = [verdicts["battle_id"], verdicts["replicate"]]
    shown = pd.get_dummies(verdicts["order"]).groupby(replicate, sort=False).any()
    shown = shown.reindex(columns=["AB", "BA", "mean"], fill_value=False)
    either, both = shown["AB"] | shown["BA"], shown["AB"] & shown["BA"]
    return shown.assign(complete=np.where(shown["mean"], ~either, both)).reset_index()


VERDICTS = table(
    "verdicts",
    RECORDED_VERDICTS.columns,
    _CALL,
    stops(
        "verdicts_are_well_formed",
        "Each answer is stored once, as an answer to a known presentation with a known fate.",
        "Correct the judge or the reader that made these rows, and remake verdicts.",
        has_columns(
            [c for c in RECORDED_VERDICTS.columns if c not in REPLY_DTYPES],
            "no column is missing",
            exact=False,
        ),
        n_rows(1, "there is at least one verdict"),
        *known("battle_id", "judge", "order", "replicate", "status", "identity"),
        unique("battle_id", "judge", "order", "replicate", note=_ONCE),
        _ORDER,
        _STATUS,
        ids=["battle_id", "order"],
    ),
    stops(
        "answers_have_their_scores",
        "An answer that is ok has every score of the rubric, and any other has none. Verdicts "
        "that came with a corpus may have a published outcome instead of scores.",
        "Look at `answer` of these rows: the parser or the reader let them through.",
        among(
            "surplus_scores",
            [0],
            "an answer that is ok has all twelve scores, or none and a published outcome; "
            "any other has none",
            of=_surplus_marks,
        ),
        within("lowest_score", 1, of=lambda t: _marks(t).min(axis=1)),
        within("highest_score", 1, 10, of=lambda t: _marks(t).max(axis=1)),
        ids=["battle_id", "order"],
    ),
    stops(
        "both_orders_are_present",
        "A battle shown in one order only carries the judge's position bias undiluted.",
        "Materialise verdicts again: the judge stopped before it had seen every order.",
        holds("complete", None, "a battle has both orders, or the published mean of both"),
        rows=_orders_shown,
        ids=["battle_id", "replicate"],
    ),
    parse_check(
        "most_answers_parse",
        "What a judge says of the few battles it can answer does not stand for the others.",
        MIN_PARSED,
    ),
    parse_check(
        "nearly_all_answers_parse",
        "Unusable answers are rarely missing at random: long and hard battles go first.",
    ),
    warns(
        "sampled_battles_were_judged",
        "Battles without any verdict leave the sample less balanced than it was chosen to be.",
        "Materialise verdicts again, or ask the publisher of recorded ones.",
        among(
            "judged",
            [True],
            f"at least {_WARN_JUDGED:.0%} of the sampled battles have a verdict",
            mostly=_WARN_JUDGED,
        ),
        rows=lambda verdicts, sample: sample[["battle_id"]].assign(
            judged=is_among(sample["battle_id"], verdicts["battle_id"])
        ),
        ids=["battle_id"],
        beside="sampled_battles",
    ),
)


def _in_one_word(
    name: str, columns: str, key: list[str], said: list[str], rules: list[Rule], *more: Check
) -> Table:
    """Return the table of a form whose answers are one word, such as a choice.

    `key` names a call; the columns `said` are all null where an answer failed, and not all where it
    did not. Those that begin with ``p_``, and ``covered``, are probabilities.
    """
    word, ids = name.removesuffix("_verdicts"), key[:2]
    checks = [
        stops(
            f"{word}s_are_well_formed",
            f"Each {word} is stored once, with a known fate, and its numbers lie on their scales.",
            "Look at `answer` and `log_probabilities` of these rows: the reader let them through.",
            *_well_formed(columns.split(), key, said),
            *rules,
            ids=ids,
        ),
        parse_check(
            f"nearly_all_{word}s_parse",
            f"{word.capitalize()}s that could be read do not stand for those that could not.",
            asked=False,
        ),
        warns(
            f"{word}s_are_covered",
            "An expectation over half of what a judge could have said is that of another judge.",
            "Look at `log_probabilities` of these rows: the endpoint lists too few "
            "alternatives for the scale, or the judge begins with other words. A coarser "
            "'score.scale' or samples (log_probabilities: off) help.",
            within(
                "covered",
                _LEAST_COVERED,
                note=f"at least {_WARN_COVERED:.0%} of the answers tell {_LEAST_COVERED:.0%} "
                "of the probability, or more",
                mostly=_WARN_COVERED,
            ),
            rows=lambda verdicts: verdicts[verdicts["covered"].notna()],
            ids=ids,
        ),
    ]
    account = "evidence answer log_probabilities prompt_tokens completion_tokens identity "
    account += "reply_model system_fingerprint said reasoning"
    return table(name, f"{columns} {account}", key, *checks, *more)


def _well_formed(columns: list[str], key: list[str], said: list[str]) -> list[Rule]:
    """Return the rules of each answer in one word: a known fate, and numbers on their scales."""
    always = [*key, "judge", "status", "evidence", "identity"]
    return [
        among(
            "n_unknown",
            [0],
            f"{', '.join(always)} are known",
            of=lambda t: t.reindex(columns=always).isna().sum(axis=1),
        ),
        unique(*key, note=_ONCE),
        _STATUS,
        among("evidence", ("log-probabilities", "samples", "published", "none")),
        holds(
            "matches_status",
            lambda t: t[said].notna().any(axis=1) == t["status"].eq("ok"),
            "an answer that is ok says something, and a failed one nothing",
        ),
        *(
            within(share, 0, 1 + _SLACK, note=f"{share} is a probability")
            for share in columns
            if share.startswith("p_") or share == "covered"
        ),
    ]


_CHANCES = ["p_a", "p_tie", "p_b"]


def _total(choices: pd.DataFrame) -> pd.Series:
    chances = choices[_CHANCES]
    total = chances.sum(axis=1, skipna=False).fillna(-1.0)
    return total.where(chances.notna().any(axis=1))


def _said_in_both_orders(choices: pd.DataFrame) -> pd.DataFrame:
    """Return A's mean share of choices in either order, one row per battle with both."""
    said = choices[choices["status"].eq("ok") & choices["order"].isin(["AB", "BA"])]
    shares = said.pivot_table("choice", "battle_id", "order", aggfunc="mean")
    both = shares.reindex(columns=["AB", "BA"]).dropna()
    return both.assign(agree=np.isclose(both["AB"], both["BA"])).reset_index()


CHOICE_VERDICTS = _in_one_word(
    "choice_verdicts",
    "battle_id judge order replicate status choice p_a p_tie p_b covered perplexity",
    _CALL,
    ["choice", *_CHANCES],
    [
        _ORDER,
        among("choice", [0.0, 0.5, 1.0], "choice is 1, 0.5, 0 or null"),
        within(
            "total",
            1 - _SLACK,
            1 + _SLACK,
            of=_total,
            note="p_a, p_tie and p_b add up to 1, or none is known",
        ),
    ],
    warns(
        "choices_survive_a_swap",
        "A judge whose choice mostly changes with the order chooses places, not completions.",
        "Prefer the sources 'likelihood' and 'score' of soft_outcomes for this judge, in "
        "which a bias for a place cancels or has none.",
        among(
            "agree",
            [True],
            f"in at least {_MIN_AGREEMENT:.0%} of the battles both orders agree",
            mostly=_MIN_AGREEMENT,
        ),
        rows=_said_in_both_orders,
        ids=["battle_id"],
    ),
)
SCORE_VERDICTS = _in_one_word(
    "score_verdicts",
    "completion_id question_id model judge replicate status score expected_score covered "
    "scale_low scale_high",
    ["completion_id", "replicate"],
    ["score"],
    [
        within("expected_score", 1, 10),
        holds(
            "on_scale",
            lambda t: (
                t["score"].isna()
                | t["score"].between(t["scale_low"], t["scale_high"]).fillna(value=False)
            ),
            "score lies between scale_low and scale_high",
        ),
    ],
)


def _models(scored_battles: pd.DataFrame) -> pd.DataFrame:
    """Return each model's part of the comparison graph and its share of the judge's wins."""
    sides = scored_battles[["model_a", "model_b"]].to_numpy(dtype=str)
    names, codes = np.unique(sides, return_inverse=True)
    a, b = codes.reshape(-1, 2).T
    linked = np.zeros((names.size, names.size), dtype=bool)
    linked[a, b] = linked[b, a] = True
    outcome = scored_battles["judge_outcome"].to_numpy()
    wins = np.bincount(a, outcome, names.size) + np.bincount(b, 1 - outcome, names.size)
    return pd.DataFrame(
        {
            "model": names,
            "component": connected_components(linked),
            "holds_others_together": cut_models(linked),
            "share_of_wins": wins / np.bincount(codes.ravel(), minlength=names.size),
        }
    )


def _of_models(name: str, guards: str, rule: Rule, remedy: str, *, blocking: bool = False) -> Check:
    return Check(name, guards, [rule], remedy, blocking, not blocking, _models, ["model"])


SCORED_BATTLES = table(
    "scored_battles",
    SCORED_COLUMNS,
    ["battle_id"],
    stops(
        "scores_are_in_range",
        "Score differences and outcomes lie on their scales, one row per battle.",
        "Remake verdicts and scored_battles; a score outside the rubric got through.",
        n_rows(1, "at least one battle is scored"),
        unique("battle_id"),
        *known("model_a", "model_b", "score_difference", "judge_outcome"),
        within("score_difference", -9, 9),
        within("difference_ab", -9, 9),
        within("difference_ba", -9, 9),
        among("judge_outcome", [0.5, 0.0, 1.0], "judge_outcome is 1, 0.5 or 0"),
        among("recorded_outcome", [0.0, 0.25, 0.5, 0.75, 1.0]),
    ),
    _of_models(
        "models_are_connected",
        "Ratings of models with no chain of battles between them have no common scale.",
        among("component", [0], "a chain of scored battles leads from each model to the others"),
        "Judge battles that connect these models to the others, or leave them out.",
        blocking=True,
    ),
    _of_models(
        "no_model_holds_others_together",
        "A model that alone links others is held out of a graph that falls apart without it.",
        among(
            "holds_others_together",
            [False],
            "the other models stay connected when one is held out",
        ),
        "Judge battles between the models that meet only through these.",
    ),
    _of_models(
        "no_model_is_undefeated",
        "The rating of a model that wins, or loses, every battle rests on the penalty alone.",
        within(
            "share_of_wins",
            0,
            1,
            strict_min=True,
            strict_max=True,
            note="a model neither wins nor loses all of its battles in the judge's eyes",
        ),
        "Judge battles of these models against closer opponents.",
    ),
)
