"""New models of a corpus: their files, their battles against anchors, and verdicts on these."""

from collections.abc import Iterator, Mapping

import dagster as dg
import numpy as np
import pandas as pd

from assets.candidates.accepting import (
    HAS_VOTES_NOW,
    Accepted,
    accept,
    contents,
    history_in,
    keep_carrier,
)
from assets.candidates.choosing import (
    UNKNOWN_LANGUAGE,
    Needs,
    anchor_answers,
    anchor_strengths,
    battles_per_question,
    choose_for_all,
    fingerprint,
    needs_of,
)
from assets.checks import table_check
from assets.conditions import ASKS, table_asset
from assets.judging.asking import ask_judge, releasing, why_not_asked
from assets.partitions import CORPUS, by_judge, corpus_and_judge, previews_silenced
from assets.settings import CONTENTS, EVERY_JUDGE, FILES, JUDGE, SETTINGS, corpus_of, stated
from judgeline.elo import FEW_BATTLES
from judgeline.judges.budget import Budget, JointBudget
from judgeline.judges.buying import BudgetError
from judgeline.sampling import N_BANDS, strength_bands
from judgeline.steps.candidates import NO_BATTLES
from judgeline.tables.candidates import CANDIDATE_VERDICTS
from judgeline.tables.rules import Rule, different, holds, known, unique, within
from resources.candidates.folder import Seen, folder_of, list_files, wait_until_settled
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.stores import StoredVerdicts
from resources.tables.expectations import check_result, evaluate
from resources.tables.store import ParquetStore, empty_result

FINGERPRINT = "fingerprint"
"""Metadata that say which battles a table holds."""
MOST_OF_A_BAND = 2.0
MOST_OFF_LANGUAGES = 0.25
_CHOSEN_BY = ("candidates.half_width", "candidates.max_battles", "candidates.controls")


with previews_silenced():
    READABLE = dg.AssetCheckSpec(
        "candidate_files_are_readable",
        asset="candidates",
        partitions_def=CORPUS,
        description="A file that was set aside is named here once, with the reason and what to do. "
        "Other candidates go their way. A model that got votes after it was placed is no failure.",
    )


# Neither of these has an automation condition: what lies in a folder is no asset, so that the
# sensor that looks there, or a person, asks for them.
@table_asset(
    "1",
    check_specs=[READABLE],
    deps=["sampled_battles"],  # whose votes say which models are rated
)
def candidates(
    context: dg.AssetExecutionContext,
    battles: pd.DataFrame,
    catalog: Catalog,
    io_manager: dg.ResourceParam[ParquetStore],
) -> Iterator[dg.MaterializeResult[pd.DataFrame]]:
    """A new model's answer to a question that an anchor answered too, or that of an attack control.

    As dropped into the candidates folder. A file that fits no rule is set aside whole.
    """
    corpus = catalog.corpus(context.partition_key)
    wait_until_settled(folder_of(corpus.slug))
    files, found = read_candidates(corpus, battles, io_manager)
    waiting = [f"{seen.name!r} is not complete yet" for seen in files if seen.is_waiting]
    notes = [*found.notes, *waiting]
    dropped = contents(files, corpus.candidates)
    for note in notes:
        context.log.warning(note)
    yield dg.MaterializeResult(
        value=found.candidates,
        metadata={
            CONTENTS: dropped,
            SETTINGS: stated(catalog, corpus.slug, None, ("seed",), **{FILES: dropped}),
            "n_models": int(found.candidates["model"].nunique()),
            "notes": dg.MetadataValue.json(notes),
            "set_aside": dg.MetadataValue.json(found.refused.to_dict("records")),
        },
        check_results=[candidate_files_are_readable(found.refused)],
    )


def read_candidates(
    corpus: CorpusDefinition, battles: pd.DataFrame, tables: ParquetStore
) -> tuple[list[Seen], Accepted]:
    """Return the files in the candidates folder of a corpus, accepted or set aside."""
    folder = folder_of(corpus.slug)
    files = list_files(folder)
    history = history_in(tables, corpus.slug)
    options = keep_carrier(corpus.candidates, tables.stored("candidates", corpus.slug), battles)
    return files, accept(folder, files, battles, options, seed=corpus.seed, history=history)


@table_asset("2", columns={"sampled_battles": ("question_id", "model_a", "model_b")})
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
    made = (candidates, battles, asking, by_judge(conformal_calibration))
    chosen, needs = choose_candidate_battles(corpus, *made, sampled=sampled_battles, before=before)
    for judge in needs.unbounded:
        context.log.warning(
            f"no number of battles gives intervals by {judge} of {corpus.candidates.half_width:g} "
            f"Elo: its threshold is infinite, or its ratings are off by more than that allows; "
            f"{needs.n_battles} battles are taken"
        )
    half_widths = [needs.half_width(int(n)) for n in chosen["candidate"].value_counts()]
    kept = 0 if before is None else int(before["battle_id"].isin(chosen["battle_id"]).sum())
    by_judge_needs = pd.DataFrame({one: need._asdict() for one, need in needs.by_judge.items()})
    return dg.MaterializeResult(
        value=chosen,
        metadata={
            FINGERPRINT: fingerprint(chosen),
            "n_needed": needs.n_battles,
            "most_per_question": needs.per_question,
            "n_kept": kept,
            "expected_half_width": max(half_widths, default=0.0),
            "needs": dg.MetadataValue.md(by_judge_needs.T.to_markdown()),
        },
    )


def of_asked_judges(
    tables: Mapping[str, pd.DataFrame], catalog: Catalog
) -> dict[str, pd.DataFrame]:
    """Return the tables of judges that can be asked: configured, and not of kind ``recorded``."""
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


def candidate_files_are_readable(refused: pd.DataFrame) -> dg.AssetCheckResult:
    """Return whether every complete file could be read, naming those that were set aside."""
    rows = list(refused[["file", "reason", "detail"]].itertuples(index=False))
    lines = [f"{row.file or 'attack control'} ({row.reason}): {row.detail}." for row in rows]
    failed = [line for line, row in zip(lines, rows, strict=True) if row.reason != HAS_VOTES_NOW]
    n_files = "1 file was" if len(failed) == 1 else f"{len(failed)} files were"
    summary = f"{n_files} set aside." if failed else "Every complete file could be read."
    return check_result(
        " ".join([summary, *(failed or lines)]),
        passed=not failed,
        warns=False,
        n_set_aside=len(failed),
        n_with_votes_now=len(lines) - len(failed),
    )._replace(check_name=READABLE.name)


@table_check(candidate_battles, blocking=True)
def candidate_battles_are_sound(
    candidate_battles: pd.DataFrame, battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """Ids, sides, texts and anchors are what placing assumes of a candidate's battles."""
    voted = anchor_answers(battles).voted
    texts = ("candidate", "opponent", "instruction", "completion_a", "completion_b", "content_hash")

    def is_of_its_models(table: pd.DataFrame) -> np.ndarray:
        sides = table[["model_a", "model_b"]].to_numpy(dtype=object)
        pair = table[["candidate", "opponent"]].to_numpy(dtype=object)
        return np.asarray((sides == pair).all(axis=1) | (sides == pair[:, ::-1]).all(axis=1))

    return evaluate(
        candidate_battles,
        [
            unique("battle_id"),
            *known(*texts),
            different("model_a", "model_b", "a battle is between two models"),
            holds("is_own", is_of_its_models, "its models are the candidate and the opponent"),
            holds("has_an_anchor", lambda t: t["opponent"].isin(voted), "the opponent has votes"),
            holds("is_unvoted", lambda t: t["human_outcome"].isna(), "nobody voted on it"),
        ],
        ids=["battle_id"],
        remedy="Remake candidates and candidate_battles: judgeline run --corpus SLUG.",
    )


def _warned(
    by_candidate: pd.DataFrame | pd.Series, rules: list[Rule], remedy: str
) -> dg.AssetCheckResult:
    level = dg.AssetCheckSeverity.WARN
    table = by_candidate.reset_index()
    return evaluate(table, rules, ids=["candidate"], remedy=remedy, severity=level)


@table_check(candidate_battles)
def candidates_have_enough_battles(
    candidate_battles: pd.DataFrame, candidates: pd.DataFrame
) -> dg.AssetCheckResult:
    """Few battles, or many on few questions, leave a candidate's interval to a guess."""
    names = pd.Index(sorted(candidates["model"].unique()), name="candidate", dtype="str")
    questions = candidate_battles.groupby("candidate")["question_id"]
    table = questions.agg(n_battles="size", n_questions="nunique").reindex(names, fill_value=0)
    remedy = (
        "Answer more of the questions that `judgeline candidates questions` lists: battles on one "
        "answer tell little more than one of them, so that their number is limited."
    )
    if table["n_battles"].eq(0).any():
        remedy += (
            " Where there is no battle at all, no model that a judge has rated answered one of its "
            "questions: if that holds of all candidates, have a judge rate the corpus first "
            "(judgeline run --corpus SLUG)."
        )
    return _warned(table, [within(name, FEW_BATTLES) for name in table], remedy)


@table_check(candidate_battles)
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
    candidate = candidate_battles["candidate"]
    shares = band.groupby(candidate).agg(  # of the commonest band, an unknown one included
        lambda own: own.value_counts(normalize=True, dropna=False).max()
    )
    shares = shares.astype(float).where(band.notna().groupby(candidate).any())
    high = f"at most {most:.0%} of a candidate's battles are against one band of strength"
    return _warned(
        shares.rename("share"),
        [
            *known("share", note="the strength of some opponent of a candidate is known"),
            within("share", high=most, note=high),
        ],
        "Answer more questions: those answered have few anchors of other strengths. Where no "
        "strength is known, have a judge rate the corpus again: judgeline run --corpus SLUG.",
    )


@table_check(candidate_battles)
def candidates_speak_all_languages(
    candidate_battles: pd.DataFrame, battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """Ratings are of the corpus' mix of languages; a candidate's battles should have that too."""
    corpus = anchor_answers(battles).answers["language"].value_counts(normalize=True)
    languages = candidate_battles["language"].fillna(UNKNOWN_LANGUAGE)
    off = languages.groupby(candidate_battles["candidate"]).agg(
        lambda own: own.value_counts(normalize=True).sub(corpus, fill_value=0.0).abs().sum() / 2
    )  # half the sum of differences: the share that would have to move
    note = f"at most {MOST_OFF_LANGUAGES:.0%} of a candidate's battles are in the wrong language"
    return _warned(
        off.astype(float).rename("off"),
        [within("off", high=MOST_OFF_LANGUAGES, note=note)],
        "Answer questions in the languages that are missing.",
    )


_RECORDED = "the judge's verdicts came with the corpus: it cannot be asked about new models"


# No automation condition: judging costs money, so somebody has to ask for it by name.
@table_asset("1", **ASKS)
@releasing
def candidate_verdicts(
    context: dg.AssetExecutionContext,
    candidate_battles: pd.DataFrame | None,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: dg.ResourceParam[Budget],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One answer of a judge to one presentation of a new model's battle, or why there is none.

    Columns are those of verdicts. Only what the verdict store lacks is asked for, within the
    budget of the run and that of the corpus for candidates, whichever is smaller.
    """
    corpus, slug = corpus_and_judge(context)
    corpus_of(context, catalog, JUDGE)
    judge, limit = catalog.judge(slug), catalog.corpus(corpus).candidates.budget
    note, about = NO_BATTLES, ""
    if candidate_battles is not None and len(candidate_battles):
        note = _RECORDED if judge.kind == "recorded" else ""
        note = note or why_not_asked(judge, "rubric", candidate_battles) or ""
        about = fingerprint(candidate_battles)
    if candidate_battles is None or note:
        made = empty_result(CANDIDATE_VERDICTS, note)
    else:
        try:
            made = ask_judge(
                context,
                candidate_battles,
                catalog=catalog,
                verdict_store=verdict_store,
                budget=JointBudget([Budget.parse(limit), budget]),
            )
        except BudgetError as error:
            raise BudgetError(
                f"{error}. Candidates of {corpus!r} have the budget {' '.join(limit)} per judge "
                "and run: raise 'candidates.budget' of the corpus in corpora.yaml (or the run's "
                "own budget, if that is the smaller), or place them in several runs"
            ) from error
    # with the judge's identity, which is there where it was asked, that says which judge is behind
    return made._replace(metadata={**(made.metadata or {}), FINGERPRINT: about})
