"""Ratings against a reference, from a judge's preferences; with their diagnostics."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.elo import keyed_rng, spearman
from judgeline.io import score_battles
from judgeline.reference import (
    LEAST_WITHIN,
    REACH,
    abstain,
    bootstrap_gap_std_error,
    compare_references,
    diagnose_reference,
)
from judgeline.settings import Settings
from judgeline.steps.anchoring import (
    Reference,
    against,
    choose_reference,
    gaps_against,
    meetings,
    rate_against,
)
from judgeline.steps.step import Made, step
from judgeline.tables.judging import CHOICE_VERDICTS
from judgeline.tables.reference import REFERENCE_RATINGS
from judgeline.tables.schema import Table
from judgeline.tables.trust import SOFT_OUTCOMES

LIKELIHOOD, RUBRIC = "likelihood", "rubric"
"""Where preferences come from: the judge's own probabilities, or outcomes of its rubric scores."""

LEAST_COVERED = 0.8
"""Share of the best source's battles that the preferred source has to cover. A probability says
more of a battle than an outcome does, but not if most battles have none."""


class Preferences(NamedTuple):
    """A's share of the win by ``battle_id``, NaN where unknown, where it comes from and why."""

    source: str
    share: "pd.Series[float]"
    why: str


def preferences_of(
    battles: pd.DataFrame,
    reference: str,
    soft_outcomes: pd.DataFrame,
    scored_battles: pd.DataFrame | None,
) -> Preferences | None:
    """Return probabilities that cover enough battles with the reference, else rubric outcomes."""
    is_in = battles["model_a"].eq(reference) | battles["model_b"].eq(reference)
    with_reference = battles.loc[is_in, "battle_id"]
    own = soft_outcomes[soft_outcomes["source"].eq(LIKELIHOOD)].set_index("battle_id")
    shares = {LIKELIHOOD: own["soft_outcome"].astype(float)}
    if scored_battles is not None and len(scored_battles):
        shares[RUBRIC] = scored_battles.set_index("battle_id")["judge_outcome"].astype(float)
    covered = {
        source: int(with_reference.isin(share.dropna().index).sum())
        for source, share in shares.items()
    }
    source = covering(covered, prefer=LIKELIHOOD)
    if source is None:
        return None
    counts = ", ".join(f"{name} {n:,}" for name, n in covered.items())
    return Preferences(
        source,
        shares[source],
        f"{source}. Battles with the reference: {len(with_reference):,}; with preferences: "
        f"{counts}. Probabilities ({LIKELIHOOD}) are taken where they cover at least "
        f"{LEAST_COVERED:.0%} of what the rubric covers",
    )


def covering(covered: Mapping[str, int], *, prefer: str) -> str | None:
    """Return the preferred source if it covers `LEAST_COVERED` of the best, else the best one."""
    most = max(covered, key=lambda source: covered[source], default=prefer)
    if not covered.get(most):
        return None
    return prefer if covered.get(prefer, 0) >= LEAST_COVERED * covered[most] else most


def preferences_by_run(
    battles: pd.DataFrame,
    source: str,
    verdicts: pd.DataFrame | None,
    choice_verdicts: pd.DataFrame,
) -> pd.DataFrame:
    """Return A's share by battle (rows) and run of the judge (columns), NaN for a lacking order."""
    if source == RUBRIC:
        if verdicts is None:
            return pd.DataFrame()
        runs = {
            replicate: score_battles(battles, run).set_index("battle_id")["judge_outcome"]
            for replicate, run in verdicts.groupby("replicate")
        }
        return pd.DataFrame(runs)
    ok = choice_verdicts[choice_verdicts["status"].eq("ok")].dropna(subset=["p_a", "p_tie", "p_b"])
    by_run = ok.assign(share=ok["p_a"] + ok["p_tie"] / 2).groupby(["battle_id", "replicate"])
    asked = choice_verdicts.groupby("battle_id")["order"].nunique()
    answered = by_run.size()
    complete = answered.eq(asked.reindex(answered.index.get_level_values(0)).to_numpy())
    means = by_run["share"].mean()[complete].reset_index()
    return means.pivot_table("share", index="battle_id", columns="replicate")


REFERENCE_DIAGNOSTICS = Table(
    "reference_diagnostics",
    "diagnostic level value unit n threshold passed note",
    key=["diagnostic", "level"],
)
"""Diagnostics of one reference; metadata of its ratings, and no table of the store."""

MAX_SPREADS: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3)
"""Largest standard deviations over a judge's runs at which a prompt still counts."""

STD_ERROR_TOLERANCE = 0.12
"""Largest relative difference of a closed standard error from its bootstrap twin."""

N_RESAMPLES = 1000
"""Draws that know a standard error to 2.2 %."""

_NO_RUNS = "needs repeated runs of the judge: set 'replicates' to at least 2 in judges.yaml"
_NO_OTHER = "no other model met at least three of these models besides the reference"
_LEAST_SHARED = 3  # models that two references need in common for a rank correlation to say a thing
_Row = tuple[object, ...]  # diagnostic, level, value, unit, n, note, threshold, passed


def diagnose(
    table: pd.DataFrame,
    ratings: pd.DataFrame,
    met: pd.DataFrame,
    runs: np.ndarray,
    *,
    seed: int,
    stream: tuple[str, ...],
) -> pd.DataFrame:
    """Return every diagnostic of a reference, those that could not be had with the reason.

    `table` is as of `against`, `ratings` of `rate_against`, `met` of `meetings`; `runs` are
    preferences by model, question and run; `stream` names the bootstrap's streams.
    """
    reference, source = (str(ratings[name].iloc[0]) for name in ("reference_model", "source"))
    plain = rate_against(table, reference, source, Settings(), miscoverage=0.1)
    found = diagnose_reference(table.to_numpy(dtype=float))
    rows: list[_Row] = []
    for of, reach in (("models", found.models), ("prompts", found.prompts)):
        note = "" if reach.is_adequate else "gaps beyond reach rest on a handful of prompts"
        row = (f"{of}_within_reach", "{:g}-{:g}".format(*REACH), reach.share, "share")
        rows.append((*row, reach.within.size, note, LEAST_WITHIN, reach.is_adequate))
    gap, mean, n = ratings["gap"], ratings["mean_preference"], len(ratings)
    differ = all(len({*one.dropna()}) > 1 for one in (gap, mean))
    note = "" if differ else "fewer than two models that differ"
    rank = spearman(gap, mean) if differ else np.nan
    rows += [
        ("spearman_with_mean_preference", "", rank, "correlation", n, note),
        *_std_errors(table, plain.set_index("model")["std_error"], seed, stream),
        *_abstention(runs),
        *_other_references(met, reference),
    ]
    names = ["diagnostic", "level", "value", "unit", "n", "note", "threshold", "passed"]
    filled = [(*row, *(np.nan, pd.NA))[:8] for row in rows]
    return REFERENCE_DIAGNOSTICS.typed(pd.DataFrame(filled, columns=names))


def _std_errors(
    table: pd.DataFrame, closed: "pd.Series[float]", seed: int, stream: tuple[str, ...]
) -> Iterator[_Row]:
    """Yield each model's closed standard error over its bootstrap twin, then the furthest ratio."""
    measured = []
    for model, values in zip(map(str, table.index), table.to_numpy(dtype=float), strict=True):
        rng = keyed_rng(seed, *stream, model, "reference")
        twin = bootstrap_gap_std_error(values, n_resamples=N_RESAMPLES, rng=rng)
        ratio = float(closed[model]) / twin if twin else np.nan
        note = "" if twin else "all preferences are equal: resampling shows no spread"
        n = int(np.isfinite(values).sum())
        yield "std_error_ratio", model, ratio, "ratio to bootstrap", n, note
        if twin:
            text = f"furthest: {model}, {ratio:.2f} of the bootstrap's on {n} prompts"
            measured.append((abs(ratio - 1), text))
    distances = [distance for distance, _ in measured]  # NaN is the largest to argmax, and fails
    worst, furthest = measured[int(np.argmax(distances))] if measured else (np.nan, "")
    passed = worst <= STD_ERROR_TOLERANCE if measured else pd.NA
    row = ("std_error_difference", "", worst, "share of bootstrap", len(measured), furthest)
    yield *row, STD_ERROR_TOLERANCE, passed


def _abstention(runs: np.ndarray) -> Iterator[_Row]:
    """Yield, per largest spread, the share of prompts that is left and how far gaps move."""
    if runs.shape[2] < 2:
        yield "abstention_coverage", "", np.nan, "share", 0, _NO_RUNS
        return
    complete = np.where(np.isnan(runs).any(axis=2, keepdims=True), np.nan, runs)
    judged = complete[~np.isnan(complete).all(axis=(1, 2))]
    for spread in MAX_SPREADS:
        level, n = f"{spread:g}", len(judged)
        try:
            left = abstain(judged, max_spread=spread)
        except ValueError as error:  # a model keeps no prompt: no leaderboard at this spread
            yield "abstention_coverage", level, np.nan, "share", n, str(error)
            continue
        yield "abstention_coverage", level, float(left.coverage.mean()), "share", n, ""
        shift = float(np.abs(left.centred_shift).mean())
        yield "abstention_shift", level, shift, "Elo points", n, ""


def _other_references(met: pd.DataFrame, reference: str) -> list[_Row]:
    """Return, per other model as reference, how the leaderboard of the same models changes."""
    rows: list[_Row] = []
    ours = gaps_against(met, reference)
    for other in map(str, ours.index):
        both = pd.concat([ours, gaps_against(met, other)], axis=1, join="inner")
        if len(both) < _LEAST_SHARED or (both.nunique() < 2).any():
            continue
        compared = compare_references(both.to_numpy().T)
        tau, shift = float(compared.kendall[0, 1]), float(compared.mean_abs_shift[1])
        rows.append(("kendall_under_other_reference", other, tau, "rank", len(both), ""))
        rows.append(("shift_under_other_reference", other, shift, "Elo points", len(both), ""))
    return rows or [("kendall_under_other_reference", "", np.nan, "rank", 0, _NO_OTHER)]


NO_PREFERENCES = (
    "the judge gave no preferences on battles with the reference: let it choose with "
    "log-probabilities ('asks: [choice]' in judges.yaml) or score with the rubric, or "
    "choose another 'reference' in corpora.yaml"
)
_SHOWN = ("models_within_reach", "prompts_within_reach", "spearman_with_mean_preference",
          "std_error_difference")  # fmt: skip
DIAGNOSTICS = "reference_diagnostics"
"""Metadata with the diagnostics behind the ratings, a record each."""


class Anchored(NamedTuple):
    """Ratings against a reference, and what they rest on.

    `met` has the shares of all models over each other by question, `over` those over the reference,
    as of `against`; `found` is None where the judge gave no preferences on its battles.
    """

    ratings: pd.DataFrame
    reference: Reference
    found: Preferences | None
    met: pd.DataFrame
    over: pd.DataFrame


def anchored(
    battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame | None,
    scored_battles: pd.DataFrame | None,
    settings: Any,
) -> Anchored:
    """Return models rated by a judge's preferences over the reference."""
    reference = choose_reference(battles, settings.reference_model)
    soft = SOFT_OUTCOMES.empty() if soft_outcomes is None else soft_outcomes
    found = preferences_of(battles, reference.model, soft, scored_battles)
    if found is None:
        return Anchored(REFERENCE_RATINGS.empty(), reference, None, *[pd.DataFrame()] * 2)
    met = meetings(battles, found.share)
    over = against(met, reference.model)
    ratings = rate_against(
        over, reference.model, found.source, settings, miscoverage=settings.miscoverage
    )
    return Anchored(ratings, reference, found, met, over)


@step(
    REFERENCE_RATINGS,
    reads=("reference_model", "n_population", "mean_kappa", "miscoverage", "seed"),
)
def reference_ratings(
    sampled_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame | None,
    choice_verdicts: pd.DataFrame | None,
    scored_battles: pd.DataFrame | None,
    verdicts: pd.DataFrame | None,
    *,
    settings: Any,
) -> Made:
    """A model's gap to one fixed reference model, with a credible interval, in Elo points.

    From the judge's own probabilities where they cover most of the battles with the reference that
    its rubric scores cover, else from outcomes of those.
    Errors are those of one judge and of prompts at large unless the corpus asks for a factor.
    Metadata have its reach over models and prompts, errors against a bootstrap, what abstaining
    would leave, and the leaderboard under other references.
    """
    one = anchored(sampled_battles, soft_outcomes, scored_battles, settings)
    ratings, diagnostics = one.ratings, REFERENCE_DIAGNOSTICS.empty()
    if one.found is not None:
        choices = CHOICE_VERDICTS.empty() if choice_verdicts is None else choice_verdicts
        by_run = preferences_by_run(sampled_battles, one.found.source, verdicts, choices)
        diagnostics = _diagnosed(one, sampled_battles, by_run, settings)
    shown = ratings[["rank", "model", "n_prompts", "win_share", "gap", "lower", "upper", "flags"]]
    is_shown = diagnostics["diagnostic"].isin(_SHOWN) & diagnostics["value"].notna()
    overall, cells = diagnostics[is_shown], diagnostics.astype(object)
    none = "not asked for"
    notes = {
        "reference_model": one.reference.model,
        "reference_because": one.reference.why,
        "preferences_from": one.found.why if one.found else "nowhere: see the note",
        "finite_population": settings.n_population or f"{none}: prompts at large",
        "mean_kappa": settings.mean_kappa or f"{none}: errors of one judge",
        "n_beyond_reach": int(ratings["flags"].str.contains("beyond-reach").sum()),
        **({"leaderboard": shown.round(3)} if len(ratings) else {"note": NO_PREFERENCES}),
        **dict(zip(overall["diagnostic"], overall["value"].astype(float), strict=True)),
        DIAGNOSTICS: cells.where(cells.notna(), None).to_dict("records"),
    }
    return Made(ratings, notes)


def _diagnosed(
    one: Anchored, battles: pd.DataFrame, by_run: pd.DataFrame, settings: Any
) -> pd.DataFrame:
    """Return the diagnostics of ratings, from the judge's preferences in each of its runs."""
    runs = [against(meetings(battles, by_run[run]), one.reference.model) for run in by_run]
    tables = [run.reindex_like(one.over) for run in runs]
    stacked = np.stack(tables, axis=2) if runs else np.empty((*one.over.shape, 0))
    stream = (settings.stream,) if settings.stream else ()
    return diagnose(
        one.over, one.ratings, one.met, stacked.astype(float), seed=settings.seed, stream=stream
    )
