"""Ratings by language of the Soft-Elo paper, and the biases of judges that its text measures."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.diagnostics import fit_beta_with_ties, sides_agree
from judgeline.elo import ScoringMethod, fit_beta, rate, rate_outcomes, spearman
from judgeline.io import ORDERS, as_numbers, as_table, family_of, language_code
from papers.soft_elo_data import BOTH_ORDERS, PLAIN, ByCorpus, Judged, Judges, over_judges
from papers.tables import Cell, reduction, row_of

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


def languages(judged: ByCorpus) -> Iterator[Cell]:
    """Yield Table 6: strengths fitted to the battles of one language against all human ratings.

    Ratings of both sides are centred on the models of the language. The slope is the pooled one;
    ``elo_mae_own_slope`` has the language's. Means over judges.
    """
    found = judged["LMArena 100K"]
    for name, row in by_language(tuple(found)).items():
        yield from over_judges(found, row_of(name, **row))


@lru_cache(maxsize=1)
def by_language(found: tuple[Judged, ...]) -> dict[str, dict[str, float]]:
    """Return the row of each language with enough prompts that all judges scored."""
    if not found:
        return {}
    common = set.intersection(*(set(one.scored["battle_id"]) for one in found))
    shared = [one.scored["battle_id"].isin(common).to_numpy() for one in found]
    prompts = found[0].scored[shared[0]].groupby("language")["question_id"].nunique()
    rows = {}
    for code, n_prompts in prompts[prompts >= LEAST_PROMPTS].sort_values(ascending=False).items():
        fits = [
            _language(one, known & one.scored["language"].eq(code).to_numpy(bool))
            for one, known in zip(found, shared, strict=True)
        ]
        row: dict[str, float] = pd.DataFrame(fits).mean().to_dict()
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
    _, agrees = sides_agree(human, one.label[rows])
    agreement = 100 * float(agrees.mean()) if agrees.size else np.nan
    return found | {"agreement": agreement, "mean_abs_s": float(np.abs(score).mean())}


def size_by_language(judged: ByCorpus) -> Iterator[Cell]:
    """Yield Figure 10: mean size of score differences by language, mean over judges."""
    found = judged["LMArena 100K"]
    for name, row in by_language(tuple(found)).items():
        yield from over_judges(found, row_of(name, mean_abs_s=row["mean_abs_s"]))


def count_languages(judged: ByCorpus) -> Iterator[Cell]:
    """Yield Figure 5: the number of languages."""
    both = [judged[corpus][:1] for corpus in ("LMArena 100K", "LMArena 140K")]
    if all(both):
        found = {code for [one] in both for code in one.scored["language"].dropna().unique()}
        yield Cell("languages, LMArena 100K and 140K", "n", len(found))


# ------------------------------------------------------------------ text


def text(judged: ByCorpus) -> Iterator[Cell]:
    """Yield numbers that stand in the text alone: slopes of languages, and biases of judges."""
    main, other = (judged[corpus] for corpus in ("LMArena 100K", "LMArena 140K"))
    analyses = (_biases, _own_slopes, _other_slopes, _size_by_strength)
    yield from over_judges(main, [cell for analysis in analyses for cell in analysis(main)])
    yield from over_judges(other, _elo_excess(other))
    apart = judged[BOTH_ORDERS]
    yield from over_judges(apart, _position(apart))
    if any(judged.values()) and not apart:
        why = "needs battles with difference_ab and difference_ba"
        yield from (cell._replace(note=why) for cell in _position(apart))


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
        methods = {k: ScoringMethod(outcome=(np.sign(s) + 1) / 2) for k, s in orders.items()}
        ratings = as_table(rate(one.coded, PLAIN, methods, beta_folds=one.folds))
        residual = ratings.pivot_table("residual", "model", "method")
        moved = residual[list(ORDERS)].sub(residual["hard"], axis=0)
        error_a, error_b = residual[list(ORDERS)].abs().mean()
        rows.append(
            (
                100 * one.diagnostics["position_first_preferred"],
                100 * one.diagnostics["position_flip_rate"],
                100 * (orders["difference_ab"] > orders["difference_ba"]).mean(),
                one.diagnostics["position_first_score"],
                abs(error_a - error_b),
                moved.abs().to_numpy().max(),
            )
        )
    table = pd.DataFrame(rows, columns=[*_SHARES, "advantage", "gap", "moved"], dtype=float)
    for name in _SHARES:
        yield from row_of(name, min=table[name].min(), max=table[name].max())
    advantage, gap = table[["advantage", "gap"]].mean(skipna=False)
    note = "mean over judges"
    yield Cell("position 1 mean score advantage", "mean", advantage, note)
    yield Cell("|MAE_A - MAE_B| of single-order hard fits", "per judge", gap, note)
    row = "largest single-model deflection under one order"
    yield Cell(row, "max", table["moved"].max(skipna=False))


def _extremes(row: str, values: Iterable[float]) -> Iterator[Cell]:
    """Yield least and largest of the values that exist."""
    known = [value for value in values if not np.isnan(value)]
    return row_of(row, min=min(known), max=max(known)) if known else iter(())


def _biases(found: Judges) -> Iterator[Cell]:
    """Yield appendix F.1: length, and the excess of a judge's own family."""
    longer = [100 * one.diagnostics["verbosity_longer_preferred"] for one in found]
    yield from _extremes("P(longer preferred given |s| <= 0.3)", longer)
    partial = {one.judge: partial_length_correlation(one) for one in found}
    largest = sorted(filter(np.isfinite, partial.values()), key=abs)[-3:]
    row = "partial r of residual and mean length given human Elo"
    yield from _extremes(f"{row} (3 of 8 judges)", largest)
    yield from row_of(row, **partial)
    excess = family_excess(found, {one.judge: one.mean_by_model("points") for one in found})
    yield from _extremes("same-family score excess", excess.values())
    yield from row_of("same-family score excess", **excess)


def _elo_excess(found: Judges) -> Iterator[Cell]:
    """Yield appendix F.1: the same of soft residuals."""
    excess = family_excess(found, {one.judge: one.ratings("soft")["residual"] for one in found})
    yield from row_of("same-family Elo excess", **excess)
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


def _own_slopes(found: Judges) -> Iterator[Cell]:
    """Yield appendix E: errors by a language's own slope, beside those by the pooled one."""
    rows = {k: row for k, row in by_language(tuple(found)).items() if k in LANGUAGES.values()}
    gaps = {name: row["elo_mae_own_slope"] - row["elo_mae_soft"] for name, row in rows.items()}
    for name, gap in gaps.items():
        yield Cell("per-language minus pooled beta, MAE", name, gap)
        yield Cell("per-language beta, MAE", name, rows[name]["elo_mae_own_slope"])
    if rows:
        row = "languages where the two betas differ by at most 5 Elo MAE"
        yield Cell(row, "n of 13", sum(abs(gap) <= 5 for gap in gaps.values()))


# ------------------------------------------------------------------ the slope, and strengths


def soft_errors(one: Judged, slopes: Mapping[str, Floats]) -> dict[str, tuple[float, float]]:
    """Return MAE (Elo points) and rank correlation of soft ratings at given slopes (M,) of folds.

    A model that is rated by its own slope has no vote in it.
    """
    methods = {
        name: ScoringMethod(outcome=expit(beta[:, None] * one.score))
        for name, beta in slopes.items()
        if np.isfinite(beta).all()
    }
    table, found = as_table(rate(one.coded, PLAIN, methods, beta_folds=one.folds)), {}
    for name in slopes:
        own = table[table["method"].eq(name)].dropna(subset="residual")
        rank = spearman(own["rating"], own["human_rating"]) if len(own) > 1 else np.nan
        found[name] = float(own["residual"].abs().mean()), rank
    return found


def slopes_with_ties(one: Judged) -> Floats:
    """Return the slope of each fold on all its votes, ties as one half."""
    sides = [one.scored[f"model_{side}"].to_numpy(str) for side in "ab"]
    kept = (~np.logical_or(*(side == model for side in sides)) for model in one.coded.models)
    return np.array([fit_beta_with_ties(one.score[k], one.human[k]).beta for k in kept])


def _other_slopes(found: Judges) -> Iterator[Cell]:
    """Yield appendix C: the pooled slope, and slopes with ties in the fit, beside those of folds.

    Of both, how far the slopes are apart, and how far the errors of soft ratings.
    """
    rows, apart = [], [np.array([])]
    for one in found:
        pooled, own = np.full(one.folds.beta.shape, one.diagnostics["beta_pooled"]), one.numbers
        slopes = {"pooled": pooled, "ties": slopes_with_ties(one)}
        (error, _), (of_ties, rank) = soft_errors(one, slopes).values()
        apart.append(np.abs(one.folds.beta - pooled))
        rows.append(
            {
                "moved": abs(error - own["elo_mae_soft"]),
                "beta ratio": slopes["ties"].mean() / own["beta_star"],
                "MAE increase": of_ties - own["elo_mae_soft"],
                "delta Spearman": rank - own["spearman_soft"],
            }
        )
    if not rows:
        return
    table = pd.DataFrame(rows)
    for row, values in (
        ("deviation of held-out beta from pooled beta", pd.Series(np.concatenate(apart))),
        ("change of soft MAE, held-out against pooled beta", table.pop("moved")),
    ):
        yield from row_of(row, mean=values.mean(), max=values.max())
    yield from row_of("all battles (ties 0.5) against non-ties", **table.mean())


def _size_by_strength(found: Judges) -> Iterator[Cell]:
    """Yield section 4.2: median size of scores among models of the upper quarter, and across.

    Quarters are of the human rating; the battles of all judges are taken together.
    """
    sizes: dict[str, list[Floats]] = {"top": [], "bottom": []}
    for one in found:
        people = one.ratings("hard")["human_rating"]
        low, high = people.quantile([0.25, 0.75])
        side_a, side_b = (one.scored[f"model_{side}"].map(people) for side in "ab")
        weaker, stronger = np.minimum(side_a, side_b), np.maximum(side_a, side_b)
        sizes["top"].append(np.abs(one.score[weaker >= high]))
        sizes["bottom"].append(np.abs(one.score[(stronger >= high) & (weaker <= low)]))
    for name, parts in sizes.items():
        if parts and (every := np.concatenate(parts)).size:
            yield Cell("median |s|", f"top quartile vs {name} quartile", float(np.median(every)))
