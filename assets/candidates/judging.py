"""A new model's battles, judged and scored as those of its corpus are; with their check."""

import dagster as dg
import pandas as pd

from assets.candidates.assets import FINGERPRINT
from assets.candidates.choosing import fingerprint
from assets.conditions import judge_table
from assets.judging.asking import ask_judge, why_not_asked
from assets.partitions import corpus_and_judge
from assets.settings import JUDGE, corpus_of
from judgeline.io import SCORED_COLUMNS, score_battles
from resources.config.catalog import Catalog
from resources.judges.annotation import annotate
from resources.judges.budget import Budget, JointBudget
from resources.judges.buying import BudgetError
from resources.store.resource import StoredVerdicts
from resources.tables.candidates import CANDIDATE_VERDICTS

NO_BATTLES = "no candidate battles: drop a file into the candidates folder of the corpus"
WHOSE = ("candidate", "control", "content_hash")
"""Columns that say whose battle it is."""
_RECORDED = "the judge's verdicts came with the corpus: it cannot be asked about new models"


# No automation condition: judging costs money, so somebody has to ask for it by name.
@judge_table("1")
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
    if candidate_battles is None or candidate_battles.empty:
        note, about = NO_BATTLES, ""
    else:
        note = _RECORDED if judge.kind == "recorded" else ""
        note = note or why_not_asked(judge, "rubric", candidate_battles) or ""
        about = fingerprint(candidate_battles)
    try:
        made = (
            CANDIDATE_VERDICTS.without(note)
            if note
            else ask_judge(
                context,
                candidate_battles,
                annotate,
                form="rubric",
                catalog=catalog,
                verdict_store=verdict_store,
                budget=JointBudget([Budget.parse(limit), budget]),
            )
        )
    except BudgetError as error:
        raise BudgetError(
            f"{error}. Candidates of {corpus!r} have the budget {' '.join(limit)} per judge and "
            "run: raise 'candidates.budget' of the corpus in corpora.yaml (or the run's "
            "own budget, if that is the smaller), or place them in several runs"
        ) from error
    # with the judge's identity, which is there where it was asked, that says which judge is behind
    return made._replace(metadata={**(made.metadata or {}), FINGERPRINT: about})


def score_candidates(
    candidate_battles: pd.DataFrame | None, candidate_verdicts: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the scored battles of new models, as of the corpus, and the model of each.

    A battle without a score, such as one whose verdict failed, is not among them.
    """
    if candidate_battles is None or candidate_verdicts is None:
        return pd.DataFrame(columns=[*SCORED_COLUMNS, *WHOSE])
    judged = candidate_battles[candidate_battles["battle_id"].isin(candidate_verdicts["battle_id"])]
    scored = score_battles(judged.reset_index(drop=True), candidate_verdicts)
    whose = candidate_battles[["battle_id", *WHOSE]]
    return scored.merge(whose, on="battle_id", how="left", validate="one_to_one")
