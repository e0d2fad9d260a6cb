"""Tables of "Robust LLM-based Scoring via Reference-Anchored Elo Estimation" (2025), RAEE.

They are made from comparisons and scores of a user's own judges.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from judgeline.elo import ELO_PER_LOGIT, RatingSettings, kendall, spearman
from judgeline.reference import (
    anchored_elo,
    compare_references,
    finite_population_factor,
    soft_counts,
    subset_std_error,
)
from judgeline.reliability import (
    STRONG_JUDGE,
    kappa_of_scores,
    pooled_variance,
    single_run_reliability,
)
from papers.reference_anchored_data import (
    PAIR,
    Compared,
    others,
    rated,
    read,
    repeated,
    trusted,
)
from papers.systems import SYSTEMS, agreement_of, rate_by_systems
from papers.tables import (
    Cell,
    Items,
    Paper,
    mean_of,
    plain_name,
    printed_names,
    reduction,
    row_of,
)

RAEE = "reference-anchored"
SYSTEM_NAMES = {"bradley-terry": "Bradley-Terry", "glicko-2": "Glicko2", "trueskill": "TrueSkill"}
LIBRARIES = {"glicko-2": "glicko2", "trueskill": "trueskillthroughtime"}
"""Rating systems whose libraries come with the extra `papers`; left out where they are missing."""
TARGETS = ("gpt-4o", "gemini-2.5-flash", "o4-mini")
SIZES = (16, 24, 32, 40, 64, 80, 120, 200, 400)
"""Numbers of prompts, the last two of larger sets than the paper's."""

THRESHOLDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
MOST_JUDGES = 20
"""Number of judges up to which Figure 5 is drawn."""

Cells = Iterator[Cell]


def over_judges(ratings: pd.DataFrame) -> dict[str, float]:
    """Return the mean error of a share, and the share's coefficient of variation over judges."""
    shares = ratings.groupby(PAIR)["p"]
    return {"se": ratings["se_p"].mean(), "cv": float((shares.std() / shares.mean()).mean())}


def summary(ratings: pd.DataFrame, strong: list[str]) -> dict[str, float]:
    """Return the columns of Tables 3, 10 and 11: means over judges, and over the strong ones."""
    best, errors = ratings[ratings["judge"].isin(strong)], ["se_p", "se_elo_gap"]
    return {
        "mean_p": ratings["p"].mean(),
        "mean_elo_gap": ratings["gap"].mean(),
        "cv_p": over_judges(ratings)["cv"],
        **ratings[errors].mean().to_dict(),
        **best[errors].mean().add_prefix("strong_").to_dict(),
    }


# ------------------------------------------------------------------ direct scores


def scores_by_judge(data: Compared) -> Cells:
    """Yield Table 8: mean, spread, excess kurtosis and share of tens of each judge's scores."""
    groups = data.scored.groupby(["judge", "model"])["score"]
    table = groups.agg(mean="mean", sd="std", kurtosis=pd.Series.kurt)
    table["ceiling"] = groups.apply(lambda own: own.eq(10).mean())
    for (judge, model), own in table.iterrows():
        yield from row_of(judge, **own.add_suffix(f" / {model}"))
    for model, mean in table.groupby("model").mean().iterrows():
        yield from row_of("Total", **mean.add_suffix(f" / {model}"))


def scores(data: Compared) -> Cells:
    """Yield Table 1: means over judges, and how two judges agree on the same judgments."""
    tau = partial(_ranked, kendall)
    measures = {"pearson": "pearson", "kendall": tau, "kappa": kappa_of_scores}
    agreement = []
    for model, own in data.scored.groupby("model"):
        by_judge = own.groupby("judge")["score"]
        panel = own.pivot_table(index=["prompt", "run"], columns="judge", values="score")
        pairs = np.triu_indices(panel.shape[1], 1)
        values = {
            f"{name}_between_judges": mean_of(panel.corr(method=one).to_numpy()[pairs])
            for name, one in measures.items()
        }
        agreement.append(values)
        mean, kurtosis = by_judge.mean().mean(), by_judge.apply(pd.Series.kurt).mean()
        yield from row_of(model, direct_score_mean=mean, kurtosis=kurtosis, **values)
    if agreement:
        yield from row_of("Total", **pd.DataFrame(agreement).mean())


def _ranked(correlation: Callable[..., float], one: ArrayLike, other: ArrayLike) -> float:
    return correlation(one, other) if np.ptp(one) and np.ptp(other) else np.nan


def errors_by_method(data: Compared) -> Cells:
    """Yield Table 2: errors and variation over judges of shares, by scores and by comparisons."""
    tables = {"direct": rated(data.by_score), "raee": rated(others(data.compared))}
    found = {name: over_judges(own) for name, own in tables.items() if len(own)}
    for row, name in (("SE(p)", "se"), ("CV (judges)", "cv")):
        values = {method: one[name] for method, one in found.items()}
        fall = {"reduction": reduction(*values.values())} if len(values) == 2 else {}
        yield from row_of(row, **values, **fall)


def reliability(data: Compared) -> Cells:
    """Yield Table 16: strong and other judges, each judge's ICC, and the variance of a pool."""
    known = data.reliability.dropna()
    strong, ratings = known[known.index.isin(data.strong)], rated(others(data.compared))
    other = known.drop(strong.index)
    if len(known):
        unmeasured = len(data.reliability) - len(known)
        yield from row_of("judges", strong=len(strong), other=len(other), unmeasured=unmeasured)
    for judge, icc, n_runs in known.itertuples():
        yield from row_of(judge, icc=icc, icc_single_run=single_run_reliability(icc, int(n_runs)))
    for name, group in (("strong judges", strong), ("other judges", other)):
        own, icc = ratings[ratings["judge"].isin(group.index)], float(group["icc"].mean())
        if len(own) and icc >= 0:
            variance = float((own["se_elo_gap"] ** 2).mean())
            pooled = pooled_variance(variance, icc, len(group))
            yield from row_of(name, mean_icc=icc, elo_variance=variance, pooled_elo_variance=pooled)


def by_threshold(data: Compared) -> Cells:
    """Yield Figure 3: judges whose ICC reaches a threshold, and the errors of ratings by them."""
    known, ratings = data.reliability["icc"].dropna(), rated(others(data.compared))
    for least in THRESHOLDS if len(known) else ():
        kept = ratings[ratings["judge"].isin(known.index[known >= least])]
        errors = kept[["se_p", "se_elo_gap"]].mean()
        yield from row_of(f"ICC >= {least:g}", n_judges=int((known >= least).sum()), **errors)


def by_number(data: Compared) -> Cells:
    """Yield Figure 5: variance of a gap by the mean of J strong judges, of one judge's 1."""
    strong = data.reliability["icc"].reindex(data.strong).dropna()
    for n in range(1, MOST_JUDGES + 1) if len(strong) else ():
        yield Cell("strong judges", f"variance at J={n}", pooled_variance(1, strong.mean(), n))


def text(data: Compared) -> Cells:
    """Yield numbers of the text: what pooling gains by its formula, and spread between tasks."""
    row = f"variance reduction by pooling at reliability {STRONG_JUDGE:.2f}"
    for name, n in (("J=2", 2), ("J infinite", 10**9)):
        fall = 100 * (1 - pooled_variance(1, STRONG_JUDGE, n))
        yield Cell(row, name, fall, rule="at most")
    tau = between_tasks(rated(others(data.comparisons), "domain"))
    if np.isfinite(tau):
        note = "DerSimonian and Laird, of win shares; the paper states no estimator and no unit"
        yield Cell("between-task heterogeneity tau^2", "estimate", tau, note, "apart")


def between_tasks(ratings: pd.DataFrame) -> float:
    """Return the variance of true win shares between domains, mean over models and references.

    Shares and errors are means over judges. Source: R. DerSimonian and N. Laird (1986),
    Controlled Clinical Trials 7(3). NaN where no model was compared in two domains.
    """
    table = ratings.groupby([*PAIR, "domain"])[["p", "se_p"]].mean()
    found = []
    for _, own in table.groupby(PAIR):
        weight = 1 / own["se_p"] ** 2
        if len(own) > 1:
            spread = (weight * (own["p"] - np.average(own["p"], weights=weight)) ** 2).sum()
            scale = weight.sum() - (weight**2).sum() / weight.sum()
            found.append(max((spread - (len(own) - 1)) / scale, 0.0))
    return mean_of(found)


# ------------------------------------------------------------------ comparisons


def references(data: Compared) -> Cells:
    """Yield Table 3: win shares and gaps by model and reference."""
    for pair, own in rated(data.compared).groupby(PAIR):
        yield from row_of(" / ".join(pair), **summary(own, data.strong))


def domains(data: Compared) -> Cells:
    """Yield Table 4: the other domains' win shares and gaps by model, the gap at the mean share."""
    away = data.comparisons[data.comparisons["domain"].ne(data.main)]
    for pair, own in rated(others(away), "domain").groupby(["domain", "model"]):
        found = summary(own, data.strong)
        share = found["mean_p"]
        values = {"mean_p": share, "elo_gap": ELO_PER_LOGIT * logit(share)}
        for name, error in (("p", "se_p"), ("elo", "se_elo_gap")):
            every, strong = found[error], found[f"strong_{error}"]
            fall = reduction(every, strong)
            parts = {"all": every, "strong": strong, "reduction": fall}
            values |= {f"se_{name}_{part}": value for part, value in parts.items()}
        yield from row_of(" / ".join(pair), **values)


def categories(of_tldr: bool, data: Compared) -> Cells:
    """Yield Table 11, of TL;DR, or Table 10, of all other domains: by model and category."""
    names = data.comparisons["domain"].map(plain_name)
    table = others(data.comparisons[names.eq("tldr") == of_tldr].dropna(subset="category"))
    groups = rated(table, "domain", "category").groupby(["domain", "model", "category"])
    for (domain, model, category), own in groups:
        prefix = "" if plain_name(domain) in ("tldr", "flores") else f"{domain} / "
        yield from row_of(f"{prefix}{model} / {category}", **summary(own, data.strong))


def anchors(data: Compared) -> Cells:
    """Yield Table 5: what another reference does to a judge's order and gaps, mean over judges."""
    table = rated(data.compared).pivot_table(
        index=["judge", "model"], columns="reference_model", values="gap"
    )
    model = table.index.get_level_values("model")
    for name in table:  # a reference stands at 0 on its own board, unless it was set against itself
        table.loc[(model == name) & table[name].isna(), name] = 0.0
    known = [name for name in TARGETS if name in table]
    for pair in combinations([*known, *table.columns.difference(known)], 2):
        groups = table[list(pair)].dropna().groupby("judge")
        found = [
            compare_references(own.to_numpy().T)
            for _, own in groups
            if len(own) > 1 and own.nunique().gt(1).all()
        ]
        if found:
            row = " <-> ".join(pair)
            yield Cell(row, "kendall_tau", np.mean([one.kendall[0, 1] for one in found]))
            shift = np.mean([one.mean_abs_shift[1] for one in found])
            yield Cell(row, "mean_abs_centred_elo_shift", shift)


def abstention(data: Compared) -> Cells:
    """Yield Table 6: errors, variation and coverage, with and without prompts that runs differ on.

    A direct score is left out by the spread of the model's own scores.
    """
    keys, scored = ["judge", "model", "prompt"], repeated(data.scored)
    whole, stable = (own[keys].drop_duplicates() for own in (scored, trusted(scored, "score")))
    compared, direct = repeated(others(data.compared)), data.by_score.merge(whole, on=keys)
    left = {"Direct": direct.merge(stable, on=keys), "RAEE": trusted(compared)}
    for method, table in (("Direct", direct), ("RAEE", compared)):
        every = rated(table)
        n_prompts = every.groupby("model")["n_prompts"].sum()
        for label, ratings in (("none", every), ("trust", rated(left[method]))):
            for model, own in ratings.groupby("model"):
                coverage = own["n_prompts"].sum() / n_prompts[model]
                row = f"{method} / {label} / {model}"
                yield from row_of(row, **over_judges(own), coverage=coverage)


def trust(data: Compared) -> Cells:
    """Yield Table 12: win shares and gaps on all prompts and on the kept ones, mean over judges."""
    compared, keys = repeated(others(data.compared)), [*PAIR[::-1], "judge"]
    left = rated(trusted(compared))
    both = rated(compared).merge(left, how="left", on=keys, suffixes=("_all", "_trust"))
    both["coverage"] = both["n_prompts_trust"].fillna(0) / both["n_prompts_all"]
    coverage = both.groupby(PAIR[::-1])["coverage"].mean()
    shares = both.dropna().groupby(PAIR[::-1])[["p_all", "p_trust"]].mean()
    gaps = (ELO_PER_LOGIT * logit(shares)).rename(columns=lambda name: name.replace("p_", "elo_"))
    table = shares.join(gaps)
    for name in ("p", "elo"):
        table[f"delta_{name}"] = table[f"{name}_trust"] - table[f"{name}_all"]
    for pair, own in table.iterrows():
        yield from row_of(" / ".join(pair), coverage=coverage[pair], **own)


def systems(data: Compared, reference: str) -> pd.DataFrame:
    """Return each judge's ratings by every system at hand, in Elo points above the reference.

    A battle is a prompt, its outcome the mean over runs.
    """
    table, keys = others(data.compared), ["judge", "model", "prompt"]
    own = table[table["reference_model"].eq(reference)].groupby(keys)["preference"].mean()
    battles = own.rename("outcome").reset_index().rename(columns={"model": "model_a"})
    battles = battles.assign(
        battle_id=np.arange(len(battles)), question_id=battles["prompt"], model_b=reference
    )
    at_hand = [one for one in SYSTEMS if one not in LIBRARIES or find_spec(LIBRARIES[one])]
    parts = []
    for judge, table in battles.groupby("judge"):
        stream, l2 = ("systems", str(judge), reference), RatingSettings().l2
        found = rate_by_systems(table, reference, l2=l2, seed=0, stream=stream, systems=at_hand)
        ratings = found.pivot_table(index="model", columns="system", values="rating")
        parts.append((ratings - ratings.loc[reference]).drop(reference))
    return pd.concat(parts)


def spread_of_systems(data: Compared) -> Cells:
    """Yield Table 7: spread over judges of gaps by four systems, and their correlation."""
    every = {
        reference: systems(data, reference)
        for reference in others(data.compared)["reference_model"].unique()
    }
    for reference, ratings in every.items():
        for system, spread in ratings.groupby("model").std().mean().items():
            row, note = SYSTEM_NAMES.get(system, "RAEE"), "the paper does not say the mean of what"
            yield Cell(row, f"mean / ref {reference}", np.nan, note)
            yield Cell(row, f"std / ref {reference}", spread, "mean over models")
    table = pd.concat(every.values()) if every else pd.DataFrame()
    for system in table.columns.intersection([*SYSTEM_NAMES]):
        yield Cell(SYSTEM_NAMES[system], "corr_with_raee", table[system].corr(table[RAEE]))


def ranks(data: Compared) -> Cells:
    """Yield Table 15: ranks of many models against a reference, beside those of other systems."""
    for reference, own in others(data.compared).groupby("reference_model"):
        if own["model"].nunique() < 3:
            continue
        ratings = systems(data, str(reference)).groupby("model").mean()
        ours, best = ratings[RAEE], set(ratings[RAEE].nlargest(10).index)
        for system in ratings.columns.intersection([*SYSTEM_NAMES]):
            other = ratings[system]
            shares, top = expit(ratings / ELO_PER_LOGIT), set(other.nlargest(10).index)
            yield from row_of(
                f"RAEE vs {SYSTEM_NAMES[system]}, {len(ours)} models against {reference}",
                kendall_tau=_ranked(kendall, ours, other),
                spearman_rho=_ranked(spearman, ours, other),
                mad_elo=(ours - other).abs().mean(),
                mad_win_rate=100 * (shares[RAEE] - shares[system]).abs().mean(),
                top10_jaccard=len(best & top) / len(best | top),
            )


def errors_at(table: pd.DataFrame, n: int) -> dict[str, float]:
    """Return mean errors of shares at n prompts; a row's own prompts are its population."""
    share = table.groupby(["judge", *PAIR, "prompt"])["preference"].mean()
    wide = share.unstack()  # noqa: PD010
    wide = wide[wide.count(axis=1) >= max(n, 2)]
    if wide.empty:
        return {}
    p = anchored_elo(*soft_counts(wide)).win_share
    theory = np.sqrt(p * (1 - p) / (n + 2))
    factors = [finite_population_factor(n, size) for size in wide.count(axis=1)]
    plain, fpc = float(theory.mean()), float((theory * factors).mean())
    judged = {str(judge): own.droplevel("judge") for judge, own in share.groupby("judge")}
    factor = agreement_of(judged).get("reliability_factor", np.nan)
    seen = float(subset_std_error(wide, n).mean())
    errors = {"theoretical": plain, "fpc": fpc, "kappa": factor * fpc}
    ratios = {f"empirical_over_{name}": seen / e if e else np.nan for name, e in errors.items()}
    names = ("empirical_se", "theoretical_se", "fpc_se", "kappa_adjusted_se")
    return dict(zip(names, (seen, *errors.values()), strict=True)) | ratios


def errors_by_size(data: Compared) -> Cells:
    """Yield Table 9: errors of shares by number of prompts."""
    for n in SIZES:
        yield from row_of(f"n={n}", **errors_at(others(data.compared), n))


def errors_by_domain(data: Compared) -> Cells:
    """Yield Table 14: the errors at 40 prompts by domain."""
    listed = printed_names("reference_anchored.table14", "column")
    for domain, table in others(data.comparisons).groupby("domain"):
        errors = errors_at(table, 40)
        named = {name.replace("theoretical", "analytic"): error for name, error in errors.items()}
        own = {name: named[name] for name in listed if name in named}
        yield from row_of(str(domain), **own)


def priors(data: Compared) -> Cells:
    """Yield Table 13: each judge's gaps by Jeffreys' and by Laplace's prior, all runs counted."""
    for domain, table in others(data.comparisons).groupby("domain"):
        groups = table.groupby(["judge", *PAIR])["preference"]
        wins, n = groups.sum().to_numpy(), groups.count().to_numpy()
        losses = np.maximum(n - wins, 0)
        one, other = (anchored_elo(wins, 0 * n, losses, prior=p).gap for p in (0.5, 1.0))
        apart = np.abs(one - other)
        yield from row_of(
            str(domain),
            kendall_tau=_ranked(kendall, one, other),
            mae_elo=apart.mean(),
            max_diff_elo=apart.max(),
            within_20_elo=100 * (apart <= 20).mean(),
        )


_PAIRS, _DIRECT = "comparisons with references", "direct scores of 1-10"
_RUNS = f"{_PAIRS} in several runs"
OWN = {
    "table1": ("pearson", "kendall_", "kappa"),
    "table2": ("direct", "raee", "reduction"),
    "table4": ("se_",),
    "table6": ("se", "cv"),
    "table7": ("std", "corr"),
    "table12": ("p_", "elo_", "delta", "coverage"),
    "table13": ("mae", "max"),
}
"""Columns, by how they begin, whose definition the paper does not print."""


def _noted(name: str, make: Callable[[Compared], Iterable[Cell]], data: Compared) -> Cells:
    """Yield cells of an item, those apart from the printed ones that are not made as they were."""
    for cell in make(data):
        own = cell.column.startswith(OWN.get(name, ()))
        why = data.apart or ("by our definition: see docs/papers.md" if own else "")
        yield cell._replace(rule="apart", note=cell.note or why) if why else cell


_ITEMS: Items = {
    "table1": ("direct 1-10 scores, means over judges", _DIRECT, scores),
    "table2": ("errors, direct and anchored", f"{_PAIRS} and {_DIRECT}", errors_by_method),
    "table3": ("win shares and Elo by reference", _PAIRS, references),
    "table4": ("cross-domain means", _PAIRS, domains),
    "table5": ("anchors compared", _PAIRS, anchors),
    "table6": ("abstention: errors and coverage", f"{_RUNS}, and {_DIRECT}", abstention),
    "table7": ("spread over judges of four rating systems", _PAIRS, spread_of_systems),
    "table8": ("direct 1-10 scores by judge", _DIRECT, scores_by_judge),
    "table9": ("standard error by number of prompts", _PAIRS, errors_by_size),
    "table10": ("FloRES by language, and own categories", _PAIRS, partial(categories, False)),
    "table11": ("TL;DR by category", _PAIRS, partial(categories, True)),
    "table12": ("all and kept prompts", _RUNS, trust),
    "table13": ("Jeffreys against Laplace", _PAIRS, priors),
    "table14": ("standard error at 40 prompts by task", _PAIRS, errors_by_domain),
    "table15": ("ranks of many models", f"{_PAIRS}, three models and more", ranks),
    "fig3": ("judges by threshold", f"{_DIRECT} and {_PAIRS}, in several runs", by_threshold),
    "fig5": ("variance by number of judges", f"{_DIRECT} or {_PAIRS}, in several runs", by_number),
    "table16": ("reliability of judges", f"{_DIRECT} or {_PAIRS}, in several runs", reliability),
}
ITEMS: Items = {
    name: (title, source, partial(_noted, name, make))
    for name, (title, source, make) in _ITEMS.items()
} | {"text": ("gains of pooling, tasks", f"the formula, and {_PAIRS} in several domains", text)}


def _read(data: Path | None, say: Callable[[str], None]) -> Compared:
    """Read the data; of rating systems without their library, say what to install."""
    missing = [SYSTEM_NAMES[one] for one, library in LIBRARIES.items() if not find_spec(library)]
    if missing and data is not None:
        names = " and ".join(missing)
        say(f"{names} are left out of tables 7 and 15; run: pip install -e '.[papers]'")
    return read(data, say)


PAPER = Paper("reference_anchored", ITEMS, _read)
