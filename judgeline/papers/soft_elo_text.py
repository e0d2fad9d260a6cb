"""Numbers in the text of the Soft-Elo paper, and its ratings by language."""

import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.elo import ScoringMethod, fit_beta, rate, rate_outcomes, spearman
from judgeline.io import ORDERS, as_numbers, as_table, language_code
from judgeline.papers.soft_elo_data import BOTH_ORDERS, PLAIN, Judged, Judges, on, over_judges
from judgeline.papers.tables import Cell, extremes, mean_of, reduction, row_of

LEAST_PROMPTS = 50
"""Prompts shared by all judges from which on a language is rated."""
LANGUAGES = {
    language_code(name): name
    for name in (
        "English", "Russian", "Chinese", "Vietnamese", "German", "French", "Japanese", "Spanish",
        "Korean", "Italian", "Persian", "Portuguese", "Czech",
    )
}  # fmt: skip
"""Names of the paper's languages by code."""
Floats = NDArray[np.float64]


# ------------------------------------------------------------------ languages


def languages(judged: Judges) -> Iterator[Cell]:
    """Yield Table 6: strengths fitted to the battles of one language against all human ratings.

    Ratings of both sides are centred on the models of the language. The slope is the pooled one;
    ``elo_mae_own_slope`` has the language's. Means over judges.
    """
    found = on("LMArena 100K", judged)
    for name, row in by_language(tuple(found)).items():
        yield from over_judges(found, row_of(name, **row))


@lru_cache(maxsize=1)
def by_language(found: tuple[Judged, ...]) -> dict[str, dict[str, float]]:
    """Return the row of each language with enough prompts that all judges scored."""
    ids = [one.scored["battle_id"].tolist() for one in found]
    common = set.intersection(*map(set, ids)) if ids else set()
    shared = [np.array([name in common for name in own], dtype=bool) for own in ids]
    codes = [one.scored["language"].to_numpy(object) for one in found]
    first = (
        found[0].scored[shared[0]] if found else pd.DataFrame(columns=["language", "question_id"])
    )
    prompts = first.groupby("language")["question_id"].nunique()
    rows = {}
    for code, n_prompts in prompts[prompts >= LEAST_PROMPTS].sort_values(ascending=False).items():
        of_code = (known & (own == code) for known, own in zip(shared, codes, strict=True))
        fits = pd.DataFrame(map(_language, found, of_code))
        row: dict[str, float] = fits.mean().to_dict()
        rows[LANGUAGES.get(str(code), str(code))] = {
            "n_prompts": int(n_prompts),
            **row,
            "mae_reduction": reduction(row["elo_mae_hard"], row["elo_mae_soft"]),
            "delta_spearman": row["spearman_soft"] - row["spearman_hard"],
        }
    return rows


def _language(one: Judged, rows: NDArray[np.bool_]) -> dict[str, float]:
    """Return errors and rank correlations of ratings by some of a judge's battles."""
    score, human = one.score[rows], one.human[rows]
    own = fit_beta(score, human).beta
    shares = {
        "hard": one.coded.judge_outcome[rows] / 4,
        "soft": expit(one.diagnostics["beta_pooled"] * score),
        "own_slope": expit(own * score),
    }
    people = one.ratings("hard")["human_rating"]
    sides = [one.scored.loc[rows, f"model_{side}"].to_numpy(str) for side in "ab"]
    found = {}
    for name, share in shares.items():
        plain, _ = rate_outcomes(sides[0], sides[1], share)
        both = pd.DataFrame({"ours": pd.Series(plain.rating, plain.model), "people": people})
        both = both.dropna() - both.dropna().mean()
        found[f"elo_mae_{name}"] = float((both["ours"] - both["people"]).abs().mean())
        found[f"spearman_{name}"] = spearman(*both.to_numpy().T) if len(both) > 1 else np.nan
    decisive = np.isin(human, (0, 1)) & (score != 0)
    agreement = float(((score > 0) == (human == 1))[decisive].mean()) if decisive.any() else np.nan
    return found | {"agreement": 100 * agreement}


def count_languages(judged: Judges) -> Iterator[Cell]:
    """Yield Figure 5: the number of languages."""
    both = [on(corpus, judged)[:1] for corpus in ("LMArena 100K", "LMArena 140K")]
    if all(both):
        found = {code for [one] in both for code in one.scored["language"].dropna().unique()}
        yield Cell("languages, LMArena 100K and 140K", "n", len(found))


# ------------------------------------------------------------------ text


def text(judged: Judges) -> Iterator[Cell]:
    """Yield the numbers that stand in the text alone."""
    main, other, french = (on(c, judged) for c in ("LMArena 100K", "LMArena 140K", "ComparIA"))
    for found, cells in (
        (main, [*_errors(main), *_slopes(main), *_calibration(main), *_biases(main)]),
        (main, _languages(main)),
        (other, [*_widths("LMArena 140K", other), *_elo_excess(other)]),
        (french, _widths("ComparIA", french)),
    ):
        yield from over_judges(found, cells)
    qwen = [one.numbers["beta_star"] for one in french if one.judge.startswith("Qwen")]
    if len(qwen) == 2:
        yield from extremes("beta of the two Qwen judges on ComparIA", qwen)
    english = [one.scored["language"].eq("en").mean() * 100 for one in (*main[:1], *other[:1])]
    if len(english) == 2:
        yield from extremes("English share of instructions, LMArena 100K and 140K", english)
    for one in main:
        if one.judge == "Qwen3.5-27B":
            agreement = 100 * one.diagnostics["decisive_agreement"]
            yield from row_of(one.judge, ece=one.numbers["ece"], agreement=agreement)
    apart = on(BOTH_ORDERS, judged)
    yield from over_judges(apart, _position(apart))
    if judged and not apart:
        why = "needs battles with difference_ab and difference_ba"
        yield from (cell._replace(note=why) for cell in _position(apart))


_OF_POSITION = ("position_first_preferred", "position_flip_rate")
_SHARES = (
    "P(position 1 preferred), 3 judges",
    "flip rate on decisive battles, 3 judges",
    "share of battles whose scores favour position 1",
)


def _position(found: Judges) -> Iterator[Cell]:
    """Yield appendix F.1: what the position of an answer does to verdicts and ratings."""
    rows = []
    for one in found:
        orders = {name: as_numbers(one.scored[name]) for name in ORDERS}
        favoured = (orders["difference_ab"] > orders["difference_ba"]).mean()
        methods = {k: ScoringMethod(outcome=(np.sign(s) + 1) / 2) for k, s in orders.items()}
        ratings = as_table(rate(one.coded, PLAIN, methods, beta_folds=one.folds))
        residual = ratings.pivot_table("residual", "model", "method")
        moved = residual[list(ORDERS)].sub(residual["hard"], axis=0)
        shares = [one.diagnostics[name] for name in _OF_POSITION] + [favoured]
        error_a, error_b = residual[list(ORDERS)].abs().mean()
        advantage = one.diagnostics["position_first_score"]
        rows.append([*shares, advantage, abs(error_a - error_b), moved.abs().to_numpy().max()])
    table = pd.DataFrame(rows, columns=[*_SHARES, "advantage", "gap", "moved"], dtype=float)
    note = "mean over judges"
    for name in _SHARES:
        yield from row_of(name, min=100 * table[name].min(), max=100 * table[name].max())
    yield Cell(
        "position 1 mean score advantage", "mean", table["advantage"].mean(skipna=False), note
    )
    yield Cell(
        "|MAE_A - MAE_B| of single-order hard fits",
        "per judge",
        table["gap"].mean(skipna=False),
        note,
    )
    yield Cell(
        "largest single-model deflection under one order", "max", table["moved"].max(skipna=False)
    )


_RANGES = {
    "MAE reduction over judges": "mae_reduction",
    "delta Spearman over judges": "delta_spearman_soft_minus_hard",
    "Elo MAE hard over judges": "elo_mae_hard",
    "median interval width hard": "median_width_hard",
    "width reduction over judges": "width_reduction",
    "coverage hard": "coverage_hard",
    "coverage soft": "coverage_soft",
    "converged beta over judges": "beta_star",
}
"""Columns of tables whose least and largest value over judges the text repeats."""


def _errors(found: Judges) -> Iterator[Cell]:
    """Yield sections 4 and 5: errors and widths over judges."""

    def mean(name: str) -> float:
        return mean_of(one.numbers[name] for one in found)

    means = {"hard": mean("elo_mae_hard"), "soft": mean("elo_mae_soft")}
    yield from row_of("mean Elo MAE over 8 judges", **means)
    levels = {f"c={level}": mean(f"elo_mae_c{level}") for level in (0.75, 0.95)}
    yield from row_of("label smoothing, mean MAE over 8 judges", **levels)
    for row, name in _RANGES.items():
        yield from extremes(row, (one.numbers[name] for one in found))
    correlations = (one.diagnostics["residual_hard_human_correlation"] for one in found)
    yield from extremes("Pearson r of residual and human Elo, hard", correlations)
    for bottom, name in (
        (3, "top quartile vs top quartile"),
        (0, "top quartile vs bottom quartile"),
    ):
        yield Cell("median |s|", name, mean_of(_median_size(one, bottom) for one in found))


def _median_size(one: Judged, quartile: int) -> float:
    """Return the median absolute score of top-quartile models against those of a quartile."""
    human = one.ratings("hard")["human_rating"].rank(method="first", pct=True)
    place = np.ceil(4 * human.reindex(one.coded.models).to_numpy(float)) - 1
    first, second = place[one.coded.model_a], place[one.coded.model_b]
    rows = ((first == 3) & (second == quartile)) | ((second == 3) & (first == quartile))
    return float(np.median(np.abs(one.score[rows]))) if rows.any() else np.nan


def _slopes(found: Judges) -> Iterator[Cell]:
    """Yield section 5.1 and appendix C: slopes of folds, of all votes, and of ties as halves."""
    spread = max((one.diagnostics["beta_fold_sd"] for one in found), default=np.nan)
    yield Cell("beta: per-judge standard deviation over folds", "max", spread, rule="at most")
    far, rows = [], []
    for one in found:
        pooled, with_ties = (one.diagnostics[f"beta_{name}"] for name in ("pooled", "with_ties"))
        same, tied = one.with_slope(pooled), one.with_slope(with_ties)
        far.extend(np.abs(one.folds.beta - pooled).tolist())
        moved = abs(one.numbers["elo_mae_soft"] - same.mae)
        change = tied.spearman - same.spearman
        rows.append((moved, with_ties / pooled, change, tied.mae - same.mae))
    if rows:
        moved, *tied = np.mean(rows, axis=0).tolist()
        row = "deviation of held-out beta from pooled beta"
        yield from row_of(row, mean=mean_of(far), max=max(far))
        row = "change of soft MAE, held-out against pooled beta"
        yield from row_of(row, mean=moved, max=max(row[0] for row in rows))
        names = ("beta ratio", "delta Spearman", "MAE increase")
        values = dict(zip(names, tied, strict=True))
        yield from row_of("all battles (ties 0.5) against non-ties", **values)


def _calibration(found: Judges) -> Iterator[Cell]:
    """Yield appendix G: calibration errors, and verdicts against the sign of the scores."""
    errors = sorted(one.numbers["ece"] for one in found)
    yield from extremes("ECE of seven judges", errors[:7])
    values = {"mean": mean_of(errors), "median": float(np.median(errors or [np.nan]))}
    yield from row_of("ECE over 8 judges", **values)
    rate = mean_of(one.diagnostics["verdict_score_disagreement"] for one in found)
    row = "decisive battles with verdict and score sign in disagreement"
    yield Cell(row, "rate", 100 * rate)


def _biases(found: Judges) -> Iterator[Cell]:
    """Yield appendix F.1: length, and the excess of a judge's own family."""
    longer = [100 * one.diagnostics["verbosity_longer_preferred"] for one in found]
    yield from extremes("P(longer preferred given |s| <= 0.3)", longer)
    partial = {one.judge: partial_length_correlation(one) for one in found}
    largest = sorted(filter(np.isfinite, partial.values()), key=abs)[-3:]
    row = "partial r of residual and mean length given human Elo"
    yield from extremes(f"{row} (3 of 8 judges)", largest)
    yield from (Cell(row, judge, value) for judge, value in partial.items())
    excess = family_excess(found, {one.judge: one.mean_by_model("points") for one in found})
    yield from extremes("same-family score excess", excess.values())
    yield from (Cell("same-family score excess", judge, value) for judge, value in excess.items())


def _elo_excess(found: Judges) -> Iterator[Cell]:
    """Yield appendix F.1: the same of soft residuals."""
    excess = family_excess(found, {one.judge: one.ratings("soft")["residual"] for one in found})
    yield from (Cell("same-family Elo excess", judge, value) for judge, value in excess.items())
    if excess:
        row = "judges with positive same-family Elo excess, LMArena 140K"
        yield Cell(row, "n of 7", sum(value > 0 for value in excess.values()))


def partial_length_correlation(one: Judged) -> float:
    """Return the correlation of hard residuals and mean lengths of models, given human ratings."""
    table = one.ratings("hard").assign(length=one.mean_by_model("length")).dropna()
    if len(table) < 4:
        return np.nan
    line = np.column_stack([np.ones(len(table)), table["human_rating"]])
    sides = table[["residual", "length"]].to_numpy(float)
    left = sides - line @ np.linalg.lstsq(line, sides, rcond=None)[0]
    return float(np.corrcoef(left, rowvar=False)[0, 1])


def family_of(name: str) -> str:
    """Return the letters that a name begins with, in lower case: ``gpt`` of ``GPT-OSS-20B``."""
    found = re.match("[a-z]+", name.lower())
    return found[0] if found else ""


def family_excess(found: Judges, values: dict[str, pd.Series]) -> dict[str, float]:
    """Return by judge how much more it gives models of its family than other judges do.

    A deviation is a model's value by the judge minus the median over the other judges; the excess
    is their mean over the judge's family minus that over all other models.
    """
    table, excess = pd.DataFrame(values), {}
    family = np.array([family_of(str(name)) for name in table.index])
    for one in found if len(found) > 1 else ():
        others = table.drop(columns=one.judge).median(axis=1)
        deviation = (table[one.judge] - others).to_numpy(float)
        own = family == family_of(one.judge)
        if own.any() and not own.all():
            excess[one.judge] = float(np.nanmean(deviation[own]) - np.nanmean(deviation[~own]))
    return excess


def _widths(corpus: str, found: Judges) -> Iterator[Cell]:
    """Yield appendix D: by how much errors and widths fall on another corpus."""
    widths = [one.numbers["width_reduction"] for one in found]
    yield from extremes(
        f"MAE reduction on {corpus}", [one.numbers["mae_reduction"] for one in found]
    )
    yield from extremes(f"width reduction on {corpus}", widths)
    yield Cell("mean width reduction", corpus, mean_of(widths))


def _languages(found: Judges) -> Iterator[Cell]:
    """Yield appendix E: agreement and errors over the paper's languages."""
    rows = {k: row for k, row in by_language(tuple(found)).items() if k in LANGUAGES.values()}
    agreement = (row["agreement"] for row in rows.values())
    yield from extremes("agreement on decisive battles over 13 languages", agreement)
    yield from extremes("MAE reduction over languages", (r["mae_reduction"] for r in rows.values()))
    gap = {name: row["elo_mae_own_slope"] - row["elo_mae_soft"] for name, row in rows.items()}
    for name, value in gap.items():
        yield Cell("per-language minus pooled beta, MAE", name, value)
        yield Cell("per-language beta, MAE", name, rows[name]["elo_mae_own_slope"])
    if rows:
        close = sum(abs(value) <= 5 for value in gap.values())
        row = "languages where the two betas differ by at most 5 Elo MAE"
        yield Cell(row, "n of 13", close)
        yield Cell("shared prompts", "total", sum(row["n_prompts"] for row in rows.values()))
