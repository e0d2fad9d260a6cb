"""Verdicts of a judge on the chosen battles, and the battles scored by them; with the checks."""

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, judge_check
from assets.judging.asking import MIN_PARSED, WARN_PARSED, account_of, ask_judge, parse_rate
from assets.partitions import corpus_and_judge, of_corpus
from assets.settings import JUDGE, corpus_of
from judgeline.elo import connected_components, cut_models
from judgeline.io import PLAIN, REPLY_DTYPES, VERDICT_DTYPES, are_plain, score_battles
from judgeline.verdict import CRITERIA
from resources.config.catalog import Catalog
from resources.judges.annotation import annotate
from resources.judges.budget import Budget
from resources.judges.judge import FAILURES
from resources.judges.ledger import models_named, several_models_message
from resources.judges.recorded import recorded_marks
from resources.store.resource import StoredVerdicts
from resources.tables.expectations import evaluate

VERDICT_COLUMNS = tuple(VERDICT_DTYPES)
_NEEDED = [name for name in VERDICT_COLUMNS if name not in REPLY_DTYPES]
STATUSES = ("ok", *FAILURES)
WARN_JUDGED = 0.95


# No automation condition: judging costs money, so somebody has to ask for it by name.
@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="judging",
    code_version="1",
    ins={"sampled_battles": of_corpus(), "recorded_verdicts": of_corpus()},
)
def verdicts(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    recorded_verdicts: pd.DataFrame,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: dg.ResourceParam[Budget],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One answer of a judge to one presentation of a battle, or the reason why there is none.

    Rubric scores in points, 1 to 10, oriented to the models whichever was shown first. Only
    what neither came with the corpus nor lies in the verdict store is asked for.
    """
    _, slug = corpus_and_judge(context)
    corpus_of(context, catalog, JUDGE)
    if catalog.judge(slug).kind == "recorded" or recorded_verdicts["judge"].eq(slug).any():
        answers = recorded_marks(recorded_verdicts, sampled_battles, slug)
        return dg.MaterializeResult(value=answers, metadata=account_of(answers))
    return ask_judge(
        context,
        sampled_battles,
        annotate,
        form="rubric",
        catalog=catalog,
        verdict_store=verdict_store,
        budget=budget,
    )


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="judging",
    code_version="1",
    automation_condition=FOLLOWS,
    ins={"sampled_battles": of_corpus()},
)
def scored_battles(
    sampled_battles: pd.DataFrame, verdicts: pd.DataFrame
) -> dg.MaterializeResult[pd.DataFrame]:
    """One battle whose both orders parsed, with the judge's score difference and outcome.

    Score differences are A minus B in rubric points, -9 to 9, or 1, 0 and -1 of plain verdicts;
    outcomes are A's share of the win.
    """
    scored = score_battles(sampled_battles, verdicts)
    return dg.MaterializeResult(
        value=scored,
        metadata={
            "n_left_out": len(sampled_battles) - len(scored),
            "judge_ties": float(scored["judge_outcome"].eq(0.5).mean()),
            "mean_absolute_score_difference": float(scored["score_difference"].abs().mean()),
            **({"score_basis": PLAIN} if are_plain(verdicts) else {}),
        },
    )


@judge_check(verdicts, blocking=True)
def verdicts_are_well_formed(verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Each answer is stored once, as an answer to a known presentation with a known fate."""
    import great_expectations.expectations as gxe

    known = ("battle_id", "judge", "order", "replicate", "status", "identity")
    return evaluate(
        verdicts,
        [
            gxe.ExpectTableColumnsToMatchSet(
                column_set=_NEEDED, exact_match=False, notes="no column is missing"
            ),
            gxe.ExpectTableRowCountToBeBetween(min_value=1, notes="there is at least one verdict"),
            *(gxe.ExpectColumnValuesToNotBeNull(column=c, notes=f"{c} is known") for c in known),
            gxe.ExpectCompoundColumnsToBeUnique(
                column_list=["battle_id", "judge", "order", "replicate"],
                notes="a presentation has one verdict per replicate",
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="order", value_set=["AB", "BA", "mean"], notes="order is AB, BA or mean"
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="status",
                value_set=list(STATUSES),
                notes=f"status is one of {', '.join(STATUSES)}",
            ),
        ],
        ids=["battle_id", "order"],
        remedy="Correct the judge or the reader that made these rows, and remake verdicts.",
    )


@judge_check(verdicts)
def answers_name_one_model(verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Answers that name several models, or versions of one, are no verdicts of one judge."""
    named = models_named(verdicts)
    note = several_models_message(named)
    return dg.AssetCheckResult(
        passed=not note,
        severity=dg.AssetCheckSeverity.WARN,
        description=note or "No answer names another model than the others.",
        metadata={name: dg.MetadataValue.json(counts) for name, counts in named.items()},
    )


@judge_check(verdicts, blocking=True)
def answers_have_their_scores(verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """An answer that is ok has every score of the rubric, and any other has none.

    Verdicts that came with a corpus may have a published outcome instead of scores.
    """
    import great_expectations.expectations as gxe

    scores = verdicts.reindex(columns=[c for c in VERDICT_COLUMNS if c[:-2] in CRITERIA])
    bare = scores.isna().all(axis=1) & verdicts["recorded_outcome"].notna()
    expected = np.where(verdicts["status"].eq("ok") & ~bare, scores.shape[1], 0)
    return evaluate(
        verdicts.assign(
            surplus_scores=scores.notna().sum(axis=1).to_numpy() - expected,
            lowest_score=scores.min(axis=1),
            highest_score=scores.max(axis=1),
        ),
        [
            gxe.ExpectColumnValuesToBeInSet(
                column="surplus_scores",
                value_set=[0],
                notes="an answer that is ok has all twelve scores, or none and a published "
                "outcome; any other has none",
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="lowest_score", min_value=1, notes="no score is below 1"
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="highest_score", max_value=10, notes="no score is above 10"
            ),
        ],
        ids=["battle_id", "order"],
        remedy="Look at `answer` of these rows: the parser or the reader let them through.",
    )


@judge_check(verdicts, blocking=True)
def both_orders_are_present(verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """A battle shown in one order only carries the judge's position bias undiluted."""
    import great_expectations.expectations as gxe

    shown = (
        pd.get_dummies(verdicts["order"])
        .groupby([verdicts["battle_id"], verdicts["replicate"]], sort=False)
        .any()
        .reindex(columns=["AB", "BA", "mean"], fill_value=False)
    )
    both, averaged = shown["AB"] & shown["BA"], shown["mean"]
    either = shown["AB"] | shown["BA"]
    return evaluate(
        shown.assign(complete=np.where(averaged, ~either, both)).reset_index(),
        [
            gxe.ExpectColumnValuesToBeInSet(
                column="complete",
                value_set=[True],
                notes="a battle was shown in both orders, or the mean of both was published",
            )
        ],
        ids=["battle_id", "replicate"],
        remedy="Materialise verdicts again: the judge stopped before it had seen every order.",
    )


@judge_check(verdicts, blocking=True)
def most_answers_parse(verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """What a judge says of the few battles it can answer does not stand for the others."""
    return parse_rate(verdicts, MIN_PARSED, dg.AssetCheckSeverity.ERROR)


@judge_check(verdicts)
def nearly_all_answers_parse(verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Unusable answers are rarely missing at random: long and hard battles go first."""
    return parse_rate(verdicts, WARN_PARSED, dg.AssetCheckSeverity.WARN)


@judge_check(verdicts, sampled_battles=of_corpus("sampled_battles"))
def sampled_battles_were_judged(
    verdicts: pd.DataFrame, sampled_battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """Battles without any verdict leave the sample less balanced than it was chosen to be."""
    import great_expectations.expectations as gxe

    judged = sampled_battles["battle_id"].isin(verdicts["battle_id"])
    return evaluate(
        sampled_battles[["battle_id"]].assign(judged=judged),
        [
            gxe.ExpectColumnValuesToBeInSet(
                column="judged",
                value_set=[True],
                mostly=WARN_JUDGED,
                notes=f"at least {WARN_JUDGED:.0%} of the sampled battles have a verdict",
            )
        ],
        ids=["battle_id"],
        remedy="Materialise verdicts again, or ask the publisher of recorded ones.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@judge_check(scored_battles, blocking=True)
def scores_are_in_range(scored_battles: pd.DataFrame) -> dg.AssetCheckResult:
    """Score differences and outcomes lie on their scales, one row per battle."""
    import great_expectations.expectations as gxe

    known = ("model_a", "model_b", "score_difference", "judge_outcome")
    differences = ("score_difference", "difference_ab", "difference_ba")
    return evaluate(
        scored_battles,
        [
            gxe.ExpectTableRowCountToBeBetween(min_value=1, notes="at least one battle is scored"),
            gxe.ExpectColumnValuesToBeUnique(column="battle_id", notes="battle_id is unique"),
            *(gxe.ExpectColumnValuesToNotBeNull(column=c, notes=f"{c} is known") for c in known),
            *(
                gxe.ExpectColumnValuesToBeBetween(
                    column=c, min_value=-9, max_value=9, notes=f"{c} lies in [-9, 9]"
                )
                for c in differences
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="judge_outcome",
                value_set=[0.0, 0.5, 1.0],
                notes="judge_outcome is 1, 0.5 or 0",
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="recorded_outcome",
                value_set=[0.0, 0.25, 0.5, 0.75, 1.0],
                notes="recorded_outcome is a multiple of 0.25 in [0, 1] or null",
            ),
        ],
        ids=["battle_id"],
        remedy="Remake verdicts and scored_battles; a score outside the rubric got through.",
    )


def _models(scored_battles: pd.DataFrame) -> pd.DataFrame:
    """Return each model's part of the comparison graph and its share of the judge's wins."""
    names, codes = np.unique(
        scored_battles[["model_a", "model_b"]].to_numpy(dtype=str), return_inverse=True
    )
    pairs = codes.reshape(-1, 2)
    linked = np.zeros((names.size, names.size), dtype=bool)
    linked[pairs[:, 0], pairs[:, 1]] = True
    outcome = scored_battles["judge_outcome"].to_numpy()
    wins = np.bincount(pairs[:, 0], outcome, names.size)
    wins += np.bincount(pairs[:, 1], 1 - outcome, names.size)
    return pd.DataFrame(
        {
            "model": names,
            "component": connected_components(linked | linked.T),
            "holds_others_together": cut_models(linked | linked.T),
            "share_of_wins": wins / np.bincount(codes.ravel(), minlength=names.size),
        }
    )


@judge_check(scored_battles, blocking=True)
def models_are_connected(scored_battles: pd.DataFrame) -> dg.AssetCheckResult:
    """Ratings of models with no chain of battles between them have no common scale."""
    import great_expectations.expectations as gxe

    return evaluate(
        _models(scored_battles),
        [
            gxe.ExpectColumnValuesToBeInSet(
                column="component",
                value_set=[0],
                notes="a chain of scored battles leads from each model to every other",
            )
        ],
        ids=["model"],
        remedy="Judge battles that connect these models to the others, or leave them out.",
    )


@judge_check(scored_battles)
def no_model_holds_others_together(scored_battles: pd.DataFrame) -> dg.AssetCheckResult:
    """A model that alone links others is held out of a graph that falls apart without it."""
    import great_expectations.expectations as gxe

    return evaluate(
        _models(scored_battles),
        [
            gxe.ExpectColumnValuesToBeInSet(
                column="holds_others_together",
                value_set=[False],
                notes="the other models stay connected when one is held out",
            )
        ],
        ids=["model"],
        remedy="Judge battles between the models that meet only through these.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@judge_check(scored_battles)
def no_model_is_undefeated(scored_battles: pd.DataFrame) -> dg.AssetCheckResult:
    """The rating of a model that wins, or loses, every battle rests on the penalty alone."""
    import great_expectations.expectations as gxe

    return evaluate(
        _models(scored_battles),
        [
            gxe.ExpectColumnValuesToBeBetween(
                column="share_of_wins",
                min_value=0,
                max_value=1,
                strict_min=True,
                strict_max=True,
                notes="a model neither wins nor loses all of its battles in the judge's eyes",
            )
        ],
        ids=["model"],
        remedy="Judge battles of these models against closer opponents.",
        severity=dg.AssetCheckSeverity.WARN,
    )
