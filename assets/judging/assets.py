"""Verdicts of a judge on the chosen battles, a table per form, and the battles scored by them."""

from collections.abc import Callable
from typing import Any

import dagster as dg
import pandas as pd

from assets.conditions import FOLLOWS, checks_of, judge_check, judge_table
from assets.judging.asking import account_of, ask_judge, why_not_asked
from assets.partitions import corpus_and_judge, read_as
from assets.settings import JUDGE, corpus_of
from judgeline.io import PLAIN, are_plain, score_battles
from resources.config.catalog import Catalog
from resources.judges.annotation import annotate, recorded_choices, recorded_marks
from resources.judges.budget import Budget
from resources.judges.buying import models_named
from resources.judges.forms.registered import FORM_TABLES, FormName
from resources.store.resource import StoredVerdicts
from resources.tables.expectations import check_result
from resources.tables.judging import SCORED_BATTLES, said_in_both_orders

Published = Callable[[pd.DataFrame, pd.DataFrame, str], pd.DataFrame]

_ABOUT: dict[FormName, str] = {
    "rubric": """One answer of a judge to one presentation of a battle, or why there is none.

    Rubric scores in points, 1 to 10, oriented to the models whichever was shown first. Only
    what neither came with the corpus nor lies in the verdict store is asked for.
    """,
    "score": """One score that a judge gave one completion by itself, or why there is none.

    The score is on the judge's own scale, the expected score in points of 1 to 10. Empty for
    judges that are not asked so.
    """,
    "choice": """One choice of a judge between two completions of a battle, or why there is none.

    Shares and probabilities are oriented to the models whichever was shown first. Preferences
    that came with the corpus without scores stand here too. Empty for judges not asked so.
    """,
}
_CODE_VERSIONS: dict[FormName, str] = {"score": "2"}
_PUBLISHED: dict[FormName, Published] = {"rubric": recorded_marks, "choice": recorded_choices}
"""Readers of a form's verdicts that came with a corpus, by form."""


def _entries(form: FormName, answers: pd.DataFrame) -> dict[str, Any]:
    """Return the position bias of choices as metadata."""
    both = said_in_both_orders(answers) if form == "choice" else answers.head(0)
    if both.empty:
        return {}
    return {
        "orders_agree": float(both["agree"].mean()),
        "first_shown_share": float((both["AB"] + 1 - both["BA"]).mean() / 2),
    }


def _published(
    form: FormName, catalog: Catalog, slug: str, sample: pd.DataFrame, came: pd.DataFrame
) -> pd.DataFrame | None:
    """Return a judge's verdicts in a form that came with the corpus; None if it is to be asked."""
    is_recorded = catalog.judge(slug).kind == "recorded" or came["judge"].eq(slug).any()
    if form == "rubric" and not is_recorded:
        return None
    verdicts = _PUBLISHED[form](came, sample, slug)
    return verdicts if form == "rubric" or len(verdicts) else None


def _verdict_asset(form: FormName) -> dg.AssetsDefinition:
    """Return the asset of a judge's verdicts in one form."""
    came = {"recorded_verdicts": read_as(of_corpus=True)} if form in _PUBLISHED else {}

    # No automation condition: judging costs money, so somebody has to ask for it by name.
    @judge_table(
        _CODE_VERSIONS.get(form, "1"),
        name=FORM_TABLES[form].name,
        description=_ABOUT.get(form, f"One answer of a judge in the form {form!r}."),
        ins=came,
    )
    def verdicts(
        context: dg.AssetExecutionContext,
        sampled_battles: pd.DataFrame,
        catalog: Catalog,
        verdict_store: StoredVerdicts,
        budget: dg.ResourceParam[Budget],
        **came: pd.DataFrame,
    ) -> dg.MaterializeResult[pd.DataFrame]:
        _, slug = corpus_and_judge(context)
        corpus_of(context, catalog, JUDGE)
        for published in came.values():
            found = _published(form, catalog, slug, sampled_battles, published)
            if found is not None:
                entries = {**account_of(found), **_entries(form, found)}
                return dg.MaterializeResult(value=found, metadata=entries)
        if form != "rubric" and (note := why_not_asked(catalog.judge(slug), form, sampled_battles)):
            return FORM_TABLES[form].without(note)
        made = ask_judge(
            context,
            sampled_battles,
            annotate,
            form=form,
            catalog=catalog,
            verdict_store=verdict_store,
            budget=budget,
        )
        return made._replace(metadata={**(made.metadata or {}), **_entries(form, made.value)})

    asset: dg.AssetsDefinition = verdicts
    return asset


verdict_assets = [_verdict_asset(form) for form in FORM_TABLES]
verdicts, *_ = verdict_assets
verdict_checks = [checks_of(table) for table in FORM_TABLES.values()]


@judge_check(verdicts)
def answers_name_one_model(verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Answers that name several models, or versions of one, are no verdicts of one judge."""
    named, note = models_named(verdicts)
    counted: dict[str, Any] = {
        name: dg.MetadataValue.json(counts) for name, counts in named.items()
    }
    observed = note or "No answer names another model than the others."
    return check_result(observed, passed=not note, **counted)


@judge_table("3", FOLLOWS)
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


scored_battle_checks = checks_of(SCORED_BATTLES)
