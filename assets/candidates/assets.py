"""New models of a corpus: the files dropped for them, and their battles against anchors."""

from collections.abc import Iterator, Mapping

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import OF_CORPUS, TABLE, corpus_check
from assets.partitions import CORPUS, by_judge, if_there, of_every_judge
from assets.settings import EVERY_JUDGE, FILES, SETTINGS, corpus_of, stated
from judgeline.elo import FEW_BATTLES
from judgeline.sampling import N_BANDS, strength_bands
from resources.candidates.accepting import Accepted, accept, contents, history_in
from resources.candidates.choosing import (
    Needs,
    anchor_answers,
    anchor_strengths,
    battles_per_question,
    choose_for_all,
    fingerprint,
    language_shares,
    needs_of,
)
from resources.candidates.controls import keep_carrier
from resources.candidates.folder import Seen, folder_of, list_files, wait_until_settled
from resources.candidates.schema import HAS_VOTES_NOW
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.tables.expectations import evaluate
from resources.tables.rules import among, different, holds, known, unique, within
from resources.tables.store import ParquetStore

CONTENTS, FINGERPRINT = "contents", "fingerprint"
"""Metadata that say which candidates a table was made of, and which battles it holds."""
MOST_OF_A_BAND = 2.0
MOST_OFF_LANGUAGES = 0.25
_CHOSEN_BY = ("candidates.half_width", "candidates.max_battles", "candidates.controls")
_POOL = (
    "model",
    "method",
    "human_rating",
    "residual",
    "std_error",
    "std_error_analytic",
    "vote_std_error",
)
_MADE = {**TABLE, "group_name": "candidates", "code_version": "1"}


# Neither of these has an automation condition: what lies in a folder is no asset, so that the
# sensor that looks there, or a person, asks for them.
@dg.multi_asset(
    outs={
        "candidates": dg.AssetOut(
            description="A new model's answer to a question that an anchor answered too, as "
            "dropped into the candidates folder; or that of an attack control.",
            **_MADE,
        ),
        "quarantined_candidates": dg.AssetOut(
            description="A candidate file that was set aside whole, with the reason and the "
            "offending value in its place.",
            **_MADE,
        ),
    },
    ins={"battles": dg.AssetIn()},
    deps=["sampled_battles"],  # whose votes say which models are rated
    partitions_def=CORPUS,
)
def dropped_candidates(
    context: dg.AssetExecutionContext,
    battles: pd.DataFrame,
    catalog: Catalog,
    io_manager: dg.ResourceParam[ParquetStore],
) -> Iterator[dg.MaterializeResult[pd.DataFrame]]:
    """Read the files of new models once, into answers and into files that were set aside."""
    corpus = catalog.corpus(context.partition_key)
    wait_until_settled(corpus.slug)
    files, found = read_candidates(corpus, battles, io_manager)
    waiting = [f"{seen.name!r} is not complete yet" for seen in files if seen.is_waiting]
    notes = [*found.notes, *waiting]
    dropped = contents(files, corpus.candidates)
    read = {SETTINGS: stated(catalog, corpus.slug, None, ("seed",), **{FILES: dropped})}
    for note in notes:
        context.log.warning(note)
    models = found.candidates.groupby("model", sort=True)
    yield dg.MaterializeResult(
        asset_key="candidates",
        value=found.candidates,
        metadata={
            CONTENTS: dropped,
            **read,
            "n_models": len(models),
            "answers": _records({str(model): len(own) for model, own in models}, "model"),
            "notes": dg.MetadataValue.json(notes),
        },
    )
    reasons = found.refused["reason"].value_counts()
    yield dg.MaterializeResult(
        asset_key="quarantined_candidates",
        value=found.refused,
        metadata={
            "reasons": _records({str(k): int(n) for k, n in reasons.items()}, "reason"),
            **read,
        },
    )


def read_candidates(
    corpus: CorpusDefinition, battles: pd.DataFrame, tables: ParquetStore
) -> tuple[list[Seen], Accepted]:
    """Return the files in the candidates folder of a corpus, and what becomes of each now."""
    folder = folder_of(corpus.slug)
    files = list_files(folder)
    history = history_in(tables, corpus.slug)
    options = keep_carrier(corpus.candidates, tables.stored("candidates", corpus.slug), battles)
    return files, accept(folder, files, battles, options, seed=corpus.seed, history=history)


@dg.asset(
    **OF_CORPUS,
    group_name="candidates",
    code_version="2",
    ins={
        "sampled_battles": if_there("question_id", "model_a", "model_b"),
        "heldout_ratings": of_every_judge(*_POOL, "n_battles"),
        "conformal_calibration": of_every_judge("method", "threshold", "excess_sd"),
    },
)
def candidate_battles(
    context: dg.AssetExecutionContext,
    candidates: pd.DataFrame,
    battles: pd.DataFrame,
    sampled_battles: pd.DataFrame | None,
    heldout_ratings: dict[dg.MultiPartitionKey, pd.DataFrame],
    conformal_calibration: dict[dg.MultiPartitionKey, pd.DataFrame],
    catalog: Catalog,
    io_manager: dg.ResourceParam[ParquetStore],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One battle of a new model against an anchor that answered the same question.

    As many as an interval of the half-width aimed at takes by the leave-one-out pool of the
    judge that needs most; spread over the anchors' strengths, the questions and their languages,
    and no more on one question than rated models have. Battles chosen before stay chosen.
    """
    corpus = corpus_of(context, catalog, "rating", "seed", EVERY_JUDGE, *_CHOSEN_BY)
    before = io_manager.stored("candidate_battles", corpus.slug)
    asking = of_asked_judges(by_judge(heldout_ratings), catalog)
    chosen, needs = choose_candidate_battles(
        corpus,
        candidates,
        battles,
        asking,
        by_judge(conformal_calibration),
        sampled=sampled_battles,
        before=before,
    )
    for judge in needs.unbounded:
        context.log.warning(
            f"no number of battles gives intervals by {judge} of {corpus.candidates.half_width:g} "
            f"Elo: its threshold is infinite, or its ratings are off by more than that allows; "
            f"{needs.n_battles} battles are taken"
        )
    counts = chosen["candidate"].value_counts().sort_index()
    half_widths = [needs.half_width(int(n)) for n in counts]
    kept = 0 if before is None else int(before["battle_id"].isin(chosen["battle_id"]).sum())
    return dg.MaterializeResult(
        value=chosen,
        metadata={
            FINGERPRINT: fingerprint(chosen),
            "n_needed": needs.n_battles,
            "most_per_question": needs.per_question,
            "n_kept": kept,
            "expected_half_width": max(half_widths, default=0.0),
            "needs": _needs_table(needs),
            "chosen": _records({str(name): int(n) for name, n in counts.items()}, "model"),
        },
    )


def of_asked_judges(
    tables: Mapping[str, pd.DataFrame], catalog: Catalog
) -> dict[str, pd.DataFrame]:
    """Return the tables of those judges that can be asked: configured, and not recorded."""
    able = {slug for slug, judge in catalog.judges().items() if judge.kind != "recorded"}
    return {judge: table for judge, table in tables.items() if judge in able}


def choose_candidate_battles(
    corpus: CorpusDefinition,
    candidates: pd.DataFrame,
    battles: pd.DataFrame,
    heldout: Mapping[str, pd.DataFrame],
    calibration: Mapping[str, pd.DataFrame],
    *,
    sampled: pd.DataFrame | None,
    before: pd.DataFrame | None,
) -> tuple[pd.DataFrame, Needs]:
    """Return the battles of all candidates of a corpus, and how many each takes."""
    anchors = anchor_answers(battles)
    rated_by = battles if sampled is None else sampled
    needs = needs_of(heldout, calibration, corpus.candidates, corpus.rating)._replace(
        per_question=battles_per_question(rated_by, anchors.voted)
    )
    chosen = choose_for_all(
        candidates,
        anchors.answers,
        anchor_strengths(heldout, anchors.voted),
        n_battles=needs.n_battles,
        seed=corpus.seed,
        per_question=needs.per_question,
        voted=anchors.voted,
        before=before,
    )
    return chosen, needs


def _records(counts: Mapping[str, int], name: str) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [dg.TableRecord({name: key, "n": n}) for key, n in counts.items()],
        schema=dg.TableSchema([dg.TableColumn(name), dg.TableColumn("n", "int")]),
    )


def _needs_table(needs: Needs) -> dg.MetadataValue:
    columns = ("judge", "n_battles", "wanted", "noise", "excess_sd", "threshold")
    return dg.MetadataValue.table(
        [
            dg.TableRecord(dict(zip(columns, (judge, *map(float, need)), strict=True)))
            for judge, need in needs.by_judge.items()
        ],
        schema=dg.TableSchema(
            [dg.TableColumn("judge"), *(dg.TableColumn(name, "float") for name in columns[1:])]
        ),
    )


@corpus_check(dg.AssetKey("quarantined_candidates"))
def candidate_files_are_readable(quarantined_candidates: pd.DataFrame) -> dg.AssetCheckResult:
    """A file that was set aside is named here once, with the reason and what to do.

    Other candidates go their way. A model that got votes after it was placed is no failure.
    """
    graduated = quarantined_candidates["reason"].eq(HAS_VOTES_NOW)
    told = [
        f"{file or 'attack control'} ({reason}): {detail}."
        for file, reason, detail in zip(
            *(quarantined_candidates[c].fillna("") for c in ("file", "reason", "detail")),
            strict=True,
        )
    ]
    failed = [text for text, is_fine in zip(told, graduated, strict=True) if not is_fine]
    n_files = "1 file was" if len(failed) == 1 else f"{len(failed)} files were"
    return dg.AssetCheckResult(
        passed=not failed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{n_files} set aside. {' '.join(failed)}"
        if failed
        else " ".join(["Every complete file could be read.", *told]),
        metadata={"n_set_aside": len(failed), "n_with_votes_now": int(graduated.sum())},
    )


@corpus_check(candidate_battles, blocking=True, battles=dg.AssetIn("battles"))
def candidate_battles_are_sound(
    candidate_battles: pd.DataFrame, battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """Ids, sides, texts and anchors are what placing assumes of a candidate's battles."""
    sides = candidate_battles[["model_a", "model_b"]].to_numpy(dtype=object)
    whose = candidate_battles[["candidate", "opponent"]].to_numpy(dtype=object)
    right = (sides == whose).all(axis=1) | (sides == whose[:, ::-1]).all(axis=1)
    told = ("candidate", "opponent", "instruction", "completion_a", "completion_b", "content_hash")
    return evaluate(
        candidate_battles.assign(
            has_an_anchor=candidate_battles["opponent"].isin(anchor_answers(battles).voted),
            is_of_its_models=right,
            is_voted=candidate_battles["human_outcome"].notna(),
        ),
        [
            unique("battle_id", note="battle_id is unique"),
            *known(*told),
            different("model_a", "model_b", "a battle is between two models"),
            holds("is_of_its_models", None, "its models are the candidate and the opponent"),
            holds("has_an_anchor", None, "the opponent has votes"),
            among("is_voted", [False], "nobody voted on it"),
        ],
        ids=["battle_id"],
        remedy="Remake candidates and candidate_battles: judgeline run --corpus SLUG.",
    )


@corpus_check(
    candidate_battles, candidates=dg.AssetIn("candidates", metadata={"columns": ["model"]})
)
def candidates_have_enough_battles(
    candidate_battles: pd.DataFrame, candidates: pd.DataFrame
) -> dg.AssetCheckResult:
    """Few battles, or many on few questions, leave a candidate's interval to a guess."""
    found = candidate_battles.groupby("candidate")["question_id"].agg(["size", "nunique"])
    found = found.reindex(sorted(candidates["model"].unique()), fill_value=0)
    table = pd.DataFrame(
        {
            "candidate": found.index.astype(str),
            "n_battles": found["size"].to_numpy(),
            "n_questions": found["nunique"].to_numpy(),
        }
    )
    return evaluate(
        table,
        [
            within(
                "n_battles", FEW_BATTLES, note=f"a candidate has at least {FEW_BATTLES} battles"
            ),
            within(
                "n_questions",
                FEW_BATTLES,
                note=f"they are on at least {FEW_BATTLES} different questions",
            ),
        ],
        ids=["candidate"],
        remedy=_remedy_of_few(table["n_battles"]),
        severity=dg.AssetCheckSeverity.WARN,
    )


def _remedy_of_few(n_battles: pd.Series) -> str:
    more = (
        "Answer more of the questions that `judgeline candidates questions` lists: battles on one "
        "answer tell little more than one of them, so that their number is limited."
    )
    if n_battles.gt(0).all():
        return more
    return (
        f"{more} Where there is no battle at all, no model that a judge has rated answered one of "
        "its questions: if that holds of all candidates, have a judge rate the corpus first "
        "(judgeline run --corpus SLUG)."
    )


@corpus_check(
    candidate_battles,
    battles=dg.AssetIn("battles"),
    heldout_ratings=of_every_judge("model", "human_rating"),
)
def candidates_meet_all_strengths(
    candidate_battles: pd.DataFrame,
    battles: pd.DataFrame,
    heldout_ratings: dict[dg.MultiPartitionKey, pd.DataFrame],
    catalog: Catalog,
) -> dg.AssetCheckResult:
    """A candidate that meets anchors of one strength only is placed by guesswork elsewhere.

    Bands of strength are those that battles are chosen by; opponents whose strength nobody knows
    by now are a band of their own.
    """
    asked = of_asked_judges(by_judge(heldout_ratings), catalog)
    strengths = anchor_strengths(asked, anchor_answers(battles).voted)
    bands = pd.Series(strength_bands(strengths.to_numpy()), index=strengths.index)
    most = min(MOST_OF_A_BAND / max(min(N_BANDS, len(strengths)), 1), 1.0)
    band = candidate_battles["opponent"].map(bands)
    shares = band.groupby(candidate_battles["candidate"]).agg(_largest_share)
    return evaluate(
        pd.DataFrame({"candidate": shares.index.astype(str), "share": shares.to_numpy(float)}),
        [
            *known("share", note="the strength of some opponent of a candidate is known"),
            within(
                "share",
                high=most,
                note=f"at most {most:.0%} of a candidate's battles are against one band of "
                "strength",
            ),
        ],
        ids=["candidate"],
        remedy="Answer more questions: those answered have few anchors of other strengths. Where "
        "no strength is known, have a judge rate the corpus again: judgeline run --corpus SLUG.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@corpus_check(candidate_battles, battles=dg.AssetIn("battles"))
def candidates_speak_all_languages(
    candidate_battles: pd.DataFrame, battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """Ratings are of the corpus' mix of languages; a candidate's battles should have that too."""
    corpus = language_shares(anchor_answers(battles).answers)
    own = candidate_battles["language"].fillna("").groupby(candidate_battles["candidate"])
    off = own.agg(lambda spoken: _distance(spoken.value_counts(normalize=True), corpus))
    return evaluate(
        pd.DataFrame({"candidate": off.index.astype(str), "off": off.to_numpy(float)}),
        [
            within(
                "off",
                high=MOST_OFF_LANGUAGES,
                note=f"at most {MOST_OFF_LANGUAGES:.0%} of a candidate's battles are in other "
                "languages than those of the corpus would be",
            )
        ],
        ids=["candidate"],
        remedy="Answer questions in the languages that are missing.",
        severity=dg.AssetCheckSeverity.WARN,
    )


def _largest_share(groups: pd.Series) -> float:
    """Return the share of the commonest group, or of none; NaN where no group is known."""
    shares = groups.value_counts(normalize=True, dropna=False)
    return float(shares.max()) if groups.notna().any() else np.nan


def _distance(shares: pd.Series, others: pd.Series) -> float:
    """Return half the sum of differences: the share that would have to move."""
    return float(shares.sub(others, fill_value=0.0).abs().sum() / 2)
