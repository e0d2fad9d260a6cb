"""Battles of candidates against anchors: how many each takes, and which, as tables."""

import json
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from judgeline.elo import FEW_BATTLES, settled_models
from judgeline.rating_options import RatingOptions
from judgeline.sampling import (
    NeededBattles,
    choose_battles,
    needed_battles,
    strength_bands,
    tiebreak_keys,
)
from judgeline.tables.candidates import CANDIDATE_BATTLES
from judgeline.verdict import text_hash
from resources.config.options import CandidateOptions

UNKNOWN_LANGUAGE = ""
_HASH_LENGTH = 12


class Needs(NamedTuple):
    """Battles that a candidate takes, the need by each judge, and the most on one question."""

    n_battles: int
    by_judge: dict[str, NeededBattles]
    per_question: float = math.inf

    def half_width(self, n_battles: int) -> float:
        """Return the widest half-width to expect of any judge after some battles, in Elo points."""
        if not self.by_judge or n_battles < 1:
            return math.inf
        return max(need.half_width(n_battles) for need in self.by_judge.values())

    @property
    def unbounded(self) -> list[str]:
        """Judges for which no number of battles gives the half-width that is aimed at."""
        return [judge for judge, need in self.by_judge.items() if math.isinf(need.wanted)]


def needs_of(
    heldout: Mapping[str, pd.DataFrame],
    calibration: Mapping[str, pd.DataFrame],
    options: CandidateOptions,
    rating: RatingOptions,
) -> Needs:
    """Return how many battles a candidate takes, by the leave-one-out pools of the judges.

    At most as many as the median model of the smallest pool has: a threshold holds errors that
    further battles do not average out, while the standard error would shrink.
    """
    column = "std_error_analytic" if rating.std_error == "analytic" else "std_error"
    pools = {
        judge: table[table["method"].eq(rating.method) & table["residual"].notna()]
        for judge, table in sorted(heldout.items())
        if judge in calibration
    }
    typical = [float(pool["n_battles"].median()) for pool in pools.values() if len(pool)]
    most = max(math.floor(min(typical)), FEW_BATTLES) if typical else math.inf
    needs = {}
    for judge, pool in pools.items():
        of_method = calibration[judge]["method"].eq(rating.method)
        own = calibration[judge].loc[of_method, ["threshold", "excess_sd"]]
        threshold, excess_sd = (math.inf, 0.0) if own.empty else map(float, own.iloc[0])
        names = [column, "vote_std_error", "design_effect"]
        error, of_votes, design = pool[names].to_numpy(dtype=float, na_value=np.nan).T
        needs[judge] = needed_battles(
            np.hypot(error, of_votes * np.sqrt(design)),
            pool["n_battles"].to_numpy(dtype=float),
            threshold=threshold,
            excess_sd=excess_sd,
            half_width=options.half_width,
            max_battles=int(min(options.max_battles, most)),
        )
    n_battles = max((need.n_battles for need in needs.values()), default=options.max_battles)
    return Needs(n_battles, needs)


def battles_per_question(battles: pd.DataFrame, voted: frozenset[str]) -> float:
    """Return the median number of battles that a rated model has on one question, rounded up."""
    asked = battles.melt("question_id", ["model_a", "model_b"], value_name="model")
    each = asked[asked["model"].isin(voted)].groupby("model")["question_id"]
    ratios = each.size() / each.nunique()
    return float(max(math.ceil(ratios.median()), 1)) if len(ratios) else math.inf


class AnchorAnswers(NamedTuple):
    """Answers by question and anchor, the models with votes enough, and whether there are texts."""

    answers: pd.DataFrame
    voted: frozenset[str]
    has_texts: bool


def anchor_answers(battles: pd.DataFrame) -> AnchorAnswers:
    """Return the answers of models with votes enough, one each, to questions of a single turn."""
    names = rated_models(battles)
    texts = battles[["instruction", "completion_a", "completion_b"]].notna().all(axis=1)
    single = battles[texts & (battles["n_turns"].isna() | battles["n_turns"].eq(1))]
    single = single.assign(
        key=tiebreak_keys(single["battle_id"], 0),
        language=single["language"].fillna(UNKNOWN_LANGUAGE),
    ).sort_values("key")
    shared = ["question_id", "instruction", "language", "key"]
    sides = [
        single[[*shared, *own]].set_axis([*shared, "model", "completion"], axis=1)
        for own in (("model_a", "completion_a"), ("model_b", "completion_b"))
    ]
    both = pd.concat(sides).sort_values("key", kind="stable")
    both = both[both["model"].isin(names)].drop_duplicates(["question_id", "model"])
    asked = both.drop_duplicates("question_id").set_index("question_id")
    both = both.assign(
        instruction=both["question_id"].map(asked["instruction"]),
        language=both["question_id"].map(asked["language"]),
    ).sort_values(["question_id", "model"])
    columns = ["question_id", "instruction", "language", "model", "completion"]
    return AnchorAnswers(both[columns].reset_index(drop=True), names, bool(texts.any()))


def rated_models(battles: pd.DataFrame) -> frozenset[str]:
    """Return the models with votes enough to be rated by people; see `settled_models`."""
    voted = battles[battles["human_outcome"].notna()]
    codes, names = pd.factorize(pd.concat([voted["model_a"], voted["model_b"]]))
    settled = settled_models(codes[: len(voted)], codes[len(voted) :], len(names))
    return frozenset(np.array(names, dtype=object)[settled].tolist())


def anchor_strengths(heldout: Mapping[str, pd.DataFrame], voted: frozenset[str]) -> pd.Series:
    """Return the human rating of each anchor, the median over judges; all equal without judges."""
    rated = [
        table.dropna(subset="human_rating").drop_duplicates("model").set_index("model")
        for table in heldout.values()
    ]
    if not rated:
        return pd.Series(0.0, index=sorted(voted), dtype=float)
    every = pd.concat([table["human_rating"] for table in rated], axis=1).median(axis=1)
    return every[every.index.isin(voted)].sort_index()


def questions_to_answer(answers: pd.DataFrame, n_questions: int, seed: int) -> pd.DataFrame:
    """Return the questions with answers of most anchors, in the languages' shares of the corpus."""
    asked = answers.groupby("question_id", sort=True, as_index=False).agg(
        instruction=("instruction", "first"),
        language=("language", "first"),
        n_anchors=("model", "size"),
    )
    if asked.empty:
        return asked
    order = np.lexsort([tiebreak_keys(asked["question_id"], seed), -asked["n_anchors"]])
    same = np.zeros(len(asked), dtype=np.int64)
    shares = answers["language"].value_counts(normalize=True)
    rows = choose_battles(
        same,
        asked["language"].to_numpy(dtype=str),
        same,
        same,
        np.argsort(order),
        share=asked["language"].map(shares).to_numpy(),
        n_battles=n_questions,
    )
    return asked.iloc[rows].reset_index(drop=True)


def choose_for_all(
    candidates: pd.DataFrame,
    answers: pd.DataFrame,
    strengths: pd.Series,
    *,
    n_battles: int,
    seed: int,
    per_question: float = math.inf,
    voted: frozenset[str] = frozenset(),
    before: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the battles of all candidates in turn, so that a budget that ends early is shared.

    Battles in `before` were paid for: they stay while the candidate's content is the same and its
    opponent is in `voted` or in `strengths`.
    """
    met = answers[answers["model"].isin(strengths.index)]
    bands = pd.Series(strength_bands(strengths.to_numpy()), index=strengths.index)
    shares = met["language"].value_counts(normalize=True)
    contents = candidates.drop_duplicates("model").set_index("model")["content_hash"]
    paid = CANDIDATE_BATTLES.empty() if before is None else before
    is_same = paid["candidate"].map(contents).eq(paid["content_hash"])
    paid = paid[is_same & paid["opponent"].isin(voted | frozenset(strengths.index))]
    paid = paid.assign(language=paid["language"].fillna(UNKNOWN_LANGUAGE))
    chosen = [CANDIDATE_BATTLES.empty().assign(turn=pd.Series(dtype="int64"))]
    for model, own in candidates.groupby("model", sort=True):
        stays = paid[paid["candidate"].eq(model)].sort_values("selection_order")
        places = stays["opponent"].isin(strengths.index)  # the others place nobody, nor count
        chosen.append(stays[~places].assign(turn=0))
        kept, possible = stays[places], _possible(own, met, seed)
        fresh = possible[~possible["battle_id"].isin(stays["battle_id"])]
        possible = pd.concat([kept, fresh], ignore_index=True) if len(kept) else fresh
        rows = choose_battles(
            possible["opponent"].map(bands).to_numpy(dtype=np.int64),
            possible["language"].to_numpy(dtype=str),
            possible["question_id"].to_numpy(dtype=str),
            possible["opponent"].to_numpy(dtype=str),
            tiebreak_keys(possible["battle_id"], seed),
            # a language that only battles chosen before have is chosen no more: any share will do
            share=possible["language"].map(shares).fillna(1.0).to_numpy(dtype=float),
            n_battles=n_battles,
            most_per_question=per_question,
            chosen=np.arange(len(kept)),
        )
        chosen.append(possible.iloc[rows].assign(turn=np.arange(len(rows))))
    table = pd.concat(chosen, ignore_index=True)
    table["kept"] = table["battle_id"].map(paid.set_index("battle_id")["selection_order"])
    table = table.sort_values(["kept", "turn", "candidate"], na_position="last")
    table["selection_order"] = np.arange(len(table), dtype=np.int64)
    table["language"] = table["language"].mask(table["language"].eq(UNKNOWN_LANGUAGE))
    return CANDIDATE_BATTLES.typed(table.reset_index(drop=True))


def _possible(own: pd.DataFrame, met: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return every battle of one candidate that could be judged, its side drawn by a hash."""
    first = own.iloc[0]
    carrier = json.loads(first["metadata"] or "{}").get("carrier")
    theirs = met[~met["model"].isin([first["model"], carrier])]
    theirs = theirs.rename(columns={"model": "opponent", "completion": "their_completion"})
    columns = ["question_id", "model", "control", "content_hash", "completion"]
    pairs = theirs.merge(own[columns].rename(columns={"model": "candidate"}), on="question_id")
    short = str(first["content_hash"])[:_HASH_LENGTH]
    ids = pairs["question_id"].str.cat([pairs["candidate"], pairs["opponent"]], ":") + f":{short}"
    is_a = tiebreak_keys(ids, seed + 1) % 2 == 0
    battles = pairs.assign(
        battle_id=ids,
        cluster_id=pairs["question_id"],
        model_a=pairs["candidate"].where(is_a, pairs["opponent"]),
        model_b=pairs["opponent"].where(is_a, pairs["candidate"]),
        completion_a=pairs["completion"].where(is_a, pairs["their_completion"]),
        completion_b=pairs["their_completion"].where(is_a, pairs["completion"]),
        n_turns=1,
        selection_order=0,
    )
    return CANDIDATE_BATTLES.filled(battles)


def fingerprint(battles: pd.DataFrame) -> str:
    """Return a hash of the candidate battles; empty text where there is none."""
    return text_hash("\n".join(sorted(battles["battle_id"]))) if len(battles) else ""
