"""Win rates adjusted for what a judge gets wrong, how they fare, and what to label next.

Which battles calibrate and which are tested: a model's own votes calibrate, and its battles
without a vote test, where these outnumber its votes. Elsewhere the votes on all other models
calibrate, and all of the model's battles test, its own votes hidden. That is the only way for a
new model. For a model with votes on most of its battles the direct human win rate is the better
number and stands beside; the row then shows what the judge would have said of it without votes,
and so puts to the test what is said of new models. Coverage is another matter: there a tenth of
a model's own voted battles calibrates the rest, a hundred times over.
"""

from typing import Any

import dagster as dg
import numpy as np
import pandas as pd
from scipy.stats import binom

from assets.columns import as_coded, as_numbers, as_table
from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, judge_check
from assets.figures import win_rates
from assets.partitions import corpus_and_judge
from judgeline.battle_strata import N_STRENGTHS, length_strata, strength_strata
from judgeline.label_plans import LabelPlans, plan_labels
from judgeline.model_win_rates import ModelWinRates, adjust_models
from judgeline.outcome_tables import OutcomeTables, tabulate_outcomes
from judgeline.split_coverage import SplitCoverage, split_coverage
from resources.catalog import Catalog
from resources.corpora.definitions import RatingOptions
from resources.expectations import evaluate

SURPRISE = 0.01
"""Chance of a false alarm of a check that counts hits, over all of its rows together."""
NO_VOTES = (
    "nobody voted on a battle that this judge scored, and without votes nothing says how it errs: "
    "use a corpus with votes, or have people label some battles"
)
ROUNDING = 1e-9
ADJUSTED = "mean_outcome"


@dg.asset(
    **OF_CORPUS_AND_JUDGE, group_name="win_rates", code_version="2", automation_condition=FOLLOWS
)
def adjusted_win_rates(
    context: dg.AssetExecutionContext, scored_battles: pd.DataFrame, catalog: Catalog
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's win rate as judged, adjusted for the judge's errors, and as people voted.

    One row for each model and way of adjusting, in shares of its battles against models that
    people voted on; `headline` marks the row to show.
    """
    rating = catalog.corpus(corpus_and_judge(context)[0]).rating
    if _nobody_voted(scored_battles):
        return _empty(ModelWinRates)
    table = as_table(
        adjust_models(
            _tables(scored_battles, rating),
            by_length=_tables_by_length(scored_battles, rating),
            by_strength=_tables_by_strength(scored_battles, rating),
            miscoverage=rating.miscoverage,
        )
    )
    shown = table[table["headline"]]
    return dg.MaterializeResult(
        value=table,
        metadata={
            "n_models": len(shown),
            "n_without_estimate": int(shown["status"].ne("ok").sum()),
            **_errors(shown),
            **({"win_rates": win_rates(shown)} if shown["naive_win_rate"].notna().any() else {}),
        },
    )


@dg.asset(
    **OF_CORPUS_AND_JUDGE, group_name="win_rates", code_version="2", automation_condition=FOLLOWS
)
def adjustment_coverage(
    context: dg.AssetExecutionContext, scored_battles: pd.DataFrame, catalog: Catalog
) -> dg.MaterializeResult[pd.DataFrame]:
    """Bias, width and coverage of estimators of a model's win rate, over 100 random splits.

    In each a tenth of the model's voted battles calibrates and the votes of the rest are hidden,
    ties too. `truth` is what a row is held to: the hidden win rate with ties half, or without.
    Estimators without ties cannot leave hidden ties out; where people tie, theirs is the error.
    """
    corpus, judge = corpus_and_judge(context)
    rating = catalog.corpus(corpus).rating
    if _nobody_voted(scored_battles):
        return _empty(SplitCoverage)
    table = as_table(
        split_coverage(
            _tables_by_strength(scored_battles, rating),
            miscoverage=rating.miscoverage,
            seed=rating.seed,
            stream=("adjustment-coverage", corpus, judge),
        )
    )
    whole = table[table["grouping"].eq("all")].drop(columns=["grouping", "level"])
    return dg.MaterializeResult(
        value=table,
        metadata={
            "miscoverage": rating.miscoverage,
            "all_models": dg.MetadataValue.md(whole.round(4).to_markdown(index=False)),
        },
    )


@dg.asset(
    **OF_CORPUS_AND_JUDGE, group_name="win_rates", code_version="1", automation_condition=FOLLOWS
)
def label_plan(
    context: dg.AssetExecutionContext, scored_battles: pd.DataFrame, catalog: Catalog
) -> dg.MaterializeResult[pd.DataFrame]:
    """How many more battles to label, and of which kind, for intervals of a wanted half-width.

    One row for the corpus or a model and a way of choosing battles. Labels chosen by the
    judge's verdict serve the conditional estimate alone, never the adjusted win rates.
    """
    rating = catalog.corpus(corpus_and_judge(context)[0]).rating
    if _nobody_voted(scored_battles):
        return _empty(LabelPlans)
    plans = plan_labels(
        _tables(scored_battles, rating),
        half_width=rating.win_rate_half_width,
        miscoverage=rating.miscoverage,
    )
    table = as_table(plans).astype({"n_more_won": "Int64", "n_more_lost": "Int64"})
    said = table.loc[table["grouping"].eq("all"), ["chosen_by", "plan"]]
    return dg.MaterializeResult(
        value=table,
        metadata={
            "wanted_half_width": rating.win_rate_half_width,
            "corpus": dg.MetadataValue.md(said.to_markdown(index=False)),
            "n_out_of_reach": int(table["status"].eq("out-of-reach").sum()),
        },
    )


def _nobody_voted(scored_battles: pd.DataFrame) -> bool:
    return bool(scored_battles["human_outcome"].isna().all())


def _empty(columns: Any) -> dg.MaterializeResult[pd.DataFrame]:
    texts = {"model", "estimator", "calibration", "status", "note", "grouping", "level"}
    texts |= {"chosen_by", "plan", "truth"}
    kinds = {name: "str" if name in texts else "float" for name in columns._fields}
    kinds |= {name: "Int64" for name in kinds if name.startswith("n_")}
    kinds |= {"headline": "bool"} if "headline" in kinds else {}
    table = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds.items()})
    return dg.MaterializeResult(value=table, metadata={"note": NO_VOTES})


def _tables(scored: pd.DataFrame, rating: RatingOptions) -> OutcomeTables:
    return tabulate_outcomes(as_coded(scored, rating.hard_outcome), _questions(scored))


def _tables_by_length(scored: pd.DataFrame, rating: RatingOptions) -> OutcomeTables | None:
    longer = length_strata(as_numbers(scored["length_a"]), as_numbers(scored["length_b"]))
    if longer is None:
        return None
    return tabulate_outcomes(
        as_coded(scored, rating.hard_outcome),
        _questions(scored),
        stratum_a=longer[0],
        stratum_b=longer[1],
        n_strata=2,
    )


def _tables_by_strength(scored: pd.DataFrame, rating: RatingOptions) -> OutcomeTables:
    battles = as_coded(scored, rating.hard_outcome)
    stratum_a, stratum_b = strength_strata(battles)
    return tabulate_outcomes(
        battles,
        _questions(scored),
        stratum_a=stratum_a,
        stratum_b=stratum_b,
        n_strata=N_STRENGTHS,
    )


def _questions(scored: pd.DataFrame) -> np.ndarray:
    return scored["question_id"].to_numpy(dtype=str)


def _errors(shown: pd.DataFrame) -> dict[str, float]:
    """Return mean absolute differences to the human win rate, where both are known."""
    both = shown[shown["human_win_rate"].notna() & shown["win_rate"].notna()]
    if both.empty:
        return {}
    return {
        f"mean_difference_{name}": float((both[column] - both["human_win_rate"]).abs().mean())
        for name, column in (("naive", "naive_win_rate"), ("adjusted", "win_rate"))
    }


@judge_check(adjusted_win_rates)
def judge_is_better_than_chance(adjusted_win_rates: pd.DataFrame) -> dg.AssetCheckResult:
    """A win rate can be adjusted only for a judge that does better than chance on votes.

    It is an error where no model has one, and a warning where some have.
    """
    import great_expectations.expectations as gxe

    shown = adjusted_win_rates[adjusted_win_rates["headline"]]
    some = shown["status"].eq("ok").any()
    return evaluate(
        shown,
        [
            gxe.ExpectColumnValuesToNotBeInSet(
                column="status",
                value_set=["chance"],
                notes="the judge tells won battles from lost ones better than chance",
            )
        ],
        ids=["model", "estimator"],
        remedy="These models have no adjusted win rate: label more battles, or withhold this "
        "judge. Other tables do not depend on it.",
        severity=dg.AssetCheckSeverity.WARN if some else dg.AssetCheckSeverity.ERROR,
    )


@judge_check(adjusted_win_rates)
def win_rates_lie_in_their_intervals(adjusted_win_rates: pd.DataFrame) -> dg.AssetCheckResult:
    """Adjusted win rates are shares, inside of their intervals, or say why there is none."""
    import great_expectations.expectations as gxe

    table = adjusted_win_rates.assign(
        explained=adjusted_win_rates["status"].eq("ok").eq(adjusted_win_rates["win_rate"].notna()),
        below=adjusted_win_rates["win_rate"] - adjusted_win_rates["win_rate_lower"],
        above=adjusted_win_rates["win_rate_upper"] - adjusted_win_rates["win_rate"],
    )
    shares = ("naive_win_rate", "win_rate", "win_rate_lower", "win_rate_upper", "human_win_rate")
    return evaluate(
        table,
        [
            *(
                gxe.ExpectColumnValuesToBeBetween(
                    column=name, min_value=0, max_value=1, notes=f"{name} is a share"
                )
                for name in shares
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="explained", value_set=[True], notes="a row has a value or says why not"
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="below", min_value=-ROUNDING, notes="no interval begins above its estimate"
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="above", min_value=-ROUNDING, notes="no interval ends below its estimate"
            ),
        ],
        ids=["model", "estimator"],
        remedy="An interval beside its estimate comes from very few labels: label more battles. "
        "Otherwise remake adjusted_win_rates.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@judge_check(adjusted_win_rates)
def votes_on_others_can_stand_in(adjusted_win_rates: pd.DataFrame) -> dg.AssetCheckResult:
    """Where votes were hidden, intervals from votes on other models should hold what they say.

    New models are adjusted in the same way, and there nobody can look. The limit is what chance
    would undercut once in a hundred times if models were independent; they share the votes that
    calibrate, so that it is a rough one.
    """
    import great_expectations.expectations as gxe

    shown = adjusted_win_rates[
        adjusted_win_rates["headline"]
        & adjusted_win_rates["calibration"].eq("others")
        & adjusted_win_rates["status"].eq("ok")
        & adjusted_win_rates["human_win_rate"].notna()
    ]
    held = shown["human_win_rate"].between(shown["win_rate_lower"], shown["win_rate_upper"])
    least = _fewest_hits(np.array([len(shown)]), shown["miscoverage"].max(), n_rows=1)[0]
    return evaluate(
        pd.DataFrame({"what": ["models"], "n_held": [int(held.sum())]}),
        [
            gxe.ExpectColumnValuesToBeBetween(
                column="n_held",
                min_value=least,
                notes=f"at least {least} of {len(shown)} hidden win rates lie in their intervals",
            )
        ],
        ids=["what"],
        remedy="The judge errs differently on different models: have people vote on battles of "
        "the new ones, whose own votes then calibrate, and until then read their win rates as "
        "the judge's opinion.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@judge_check(adjustment_coverage)
def adjusted_intervals_cover(adjustment_coverage: pd.DataFrame) -> dg.AssetCheckResult:
    """Over splits the adjusted interval holds the truth about as often as promised.

    Given a model's battles its splits are independent draws, so that hits are binomial, and the
    limit is what chance would undercut once in a hundred times over all models. It says nothing
    of battles whose votes were not hidden at random, nor of models most of whose splits had to
    be dropped, for those left are a choice.
    """
    import great_expectations.expectations as gxe

    table = adjustment_coverage[
        adjustment_coverage["grouping"].eq("model") & adjustment_coverage["estimator"].eq(ADJUSTED)
    ]
    mostly_kept = table["n_kept"].ge(table["n_dropped"])
    n_others, table = int((~mostly_kept).sum()), table[mostly_kept]
    least = _fewest_hits(table["n_kept"], table["miscoverage"].max(), n_rows=len(table))
    return evaluate(
        table.assign(least=least, n_held=table["win_rate_coverage"] * table["n_kept"] + ROUNDING),
        [
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="n_held",
                column_B="least",
                or_equal=True,
                notes="the interval holds the truth in as many splits as promised, or as many "
                f"fewer as chance allows ({n_others} models lost most splits and are left out)",
            )
        ],
        ids=["level"],
        remedy="A tenth of these models' votes is too few to calibrate on: read their adjusted "
        "intervals as too short.",
        severity=dg.AssetCheckSeverity.WARN,
    )


def _fewest_hits(n: Any, miscoverage: float, *, n_rows: int) -> np.ndarray:
    """Return how many of n intervals hold at least, but for a surprise in any of the rows."""
    if not n_rows or not np.size(n) or not np.all(n):
        return np.zeros(np.shape(n), dtype=np.int64)
    return binom.ppf(SURPRISE / n_rows, n, 1 - miscoverage).astype(np.int64)
