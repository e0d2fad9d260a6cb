"""Numbers and slugs as a reader should see them: minus signs, units, plain words."""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from judgeline.elo import surrogacy_finding
from judgeline.intervals import WITHHELD

MISSING = "–"
"""Shown where there is no number."""

UNBOUNDED = "unbounded"
"""Shown where a number is infinite."""

_METHODS = {
    "human": "human votes",
    "hard": "hard",
    "soft": "soft (calibrated)",
    "auto": "auto (headline)",
    "choice": "choice",
    "likelihood": "likelihood-aware",
    "likelihood-calibrated": "likelihood-aware (calibrated)",
    "score": "expected score (calibrated)",
    "score-plain": "score as said (calibrated)",
    "btl": "quantitative judge (BTL)",
    "btl2": "quantitative judge (BTL2)",
}

_FLAGS = {
    "no-votes": "no human votes",
    "votes-wait": "too few human votes to count yet",
    "judge-always-prefers": "the judge always prefers it",
    "judge-never-prefers": "the judge never prefers it",
    "humans-always-prefer": "humans always prefer it",
    "humans-never-prefer": "humans never prefer it",
    "few-battles": "few battles",
    "no-spread": "spread unknown",
    "no-battles-with-anchors": "no battles against voted models",
    "far-from-people": "judge far from people",
    "beyond-anchors": "beyond all that people have rated",
    "of-judges-family": "of the judge's own family",
    "anchors-disconnected": "holds the others together: no rating without it",
}


def number(value: Any, digits: int = 0, *, signed: bool = False) -> str:
    """Return a number as text with a typographic minus."""
    if value is None or pd.isna(value):
        return MISSING
    if math.isinf(value):
        return UNBOUNDED
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    if float(text) == 0:  # no "-0.0": rounding to zero loses the sign too
        text = text.lstrip("+-")
    return text.replace("-", "−")


def significant(value: Any) -> str:
    """Return a number of unknown scale with four significant digits."""
    if value is None or pd.isna(value) or math.isinf(value):
        return number(value)
    return f"{value:.4g}".replace("-", "−")


def count(value: Any) -> str:
    """Return a whole number with thousands set off by a thin space."""
    return MISSING if pd.isna(value) else f"{int(value):,}".replace(",", "\u2009")


def percent(value: Any) -> str:
    """Return a share in [0, 1] as a percentage."""
    return MISSING if pd.isna(value) else f"{number(100 * value)} %"


def span(low: Any, high: Any) -> str:
    """Return the ends of an interval as text; an infinite interval is "unbounded"."""
    if pd.isna(low) or pd.isna(high):
        return MISSING
    if math.isinf(low) or math.isinf(high):
        return UNBOUNDED
    return f"{number(low)} – {number(high)}"


def rank_text(row: Mapping[str, Any]) -> str:
    """Return a model's rank with those that chance allows, such as ``"9 (7 to 11)"``."""
    rank, best, worst = (row.get(name) for name in ("rank", "best_rank", "worst_rank"))
    if pd.isna(rank):
        return MISSING
    return f"{rank:.0f}" if pd.isna(best) else f"{rank:.0f} ({best:.0f} to {worst:.0f})"


_NAMED = 5  # models in a sentence


def rating_text(row: Mapping[str, Any]) -> str:
    """Return a rating with its interval, in Elo points, such as ``"1572 (1532 to 1612)"``."""
    low, high = row["lower"], row["upper"]
    ends = UNBOUNDED if math.isinf(high - low) else f"{number(low)} to {number(high)}"
    return f"{number(row['rating'])} ({ends})"


def widths_text(leaderboard: pd.DataFrame) -> str:
    """Return how many intervals of a leaderboard are finite, and their median width."""
    width = (leaderboard["upper"] - leaderboard["lower"]).dropna().astype(float)
    finite = width[np.isfinite(width)]
    text = f"{len(finite)} of {len(width)} are finite"
    return f"{text}, median width {number(finite.median())} Elo" if len(finite) else text


def unvoted_text(leaderboard: pd.DataFrame) -> str:
    """Return the ratings of the models that nobody has voted on, in a sentence; empty if none."""
    rated = leaderboard[leaderboard["rating"].notna()]
    flags = rated["flags"].fillna("").str.split(";")
    new = rated[flags.map(lambda known: "no-votes" in known)].to_dict("records")
    if not new:
        return ""
    named = [f"{row['model']} {rating_text(row)}" for row in new[:_NAMED]]
    more = [f"and {len(new) - _NAMED} more"] if len(new) > _NAMED else []
    return f"Not voted on: {', '.join([*named, *more])}."


def basis_text(leaderboard: pd.DataFrame) -> str:
    """Return the rating method of a leaderboard and its basis; every basis if models differ.

    Tables of earlier versions have no basis: then only the method.
    """
    rated = f"rated by {leaderboard['method'].iloc[0]}"
    basis = leaderboard.get("basis", pd.Series(dtype=str))
    counts = basis[basis.ne("")].value_counts()
    if len(counts) < 2:
        return ", ".join([rated, *counts.index])
    whole = {re.sub(r"(?<=: )\d+", "{}", words) for words in counts.index}
    if len(whole) == 1:
        numbers = sorted(int(re.findall(r"(?<=: )\d+", words)[0]) for words in counts.index)
        return f"{rated}, {whole.pop().format(f'{numbers[0]} to {numbers[-1]}')}"
    parts = [(*words.partition(": ")[::2], n) for words, n in counts.items()]
    of_all = f"of {len(leaderboard)} models"
    return f"{rated}, {'; '.join(f'{name} for {n} {of_all} ({why})' for name, why, n in parts)}"


def surrogacy_text(diagnostics: pd.DataFrame) -> str:
    """Return the finding of the surrogacy test in a sentence; empty where it found nothing."""
    values = diagnostics.drop_duplicates("diagnostic").set_index("diagnostic")["value"]
    gamma = values.get("surrogacy_gamma", math.nan)
    error = values.get("surrogacy_gamma_std_error", math.nan)
    return surrogacy_finding(gamma, error) if abs(gamma) > 2 * error else ""


def groups_text(conformal: pd.DataFrame, method: str) -> str:
    """Return which groups of models intervals by a method fail, in a sentence; empty if none."""
    own = conformal[conformal["method"] == method]
    below = "".join(own.get("structured_below", []))  # not of earlier versions
    if not below:
        return ""
    return (
        "Intervals hold less often than chance allows for models unlike those that calibrate "
        f"them: {below}."
    )


def method_words(method: str) -> str:
    """Return the name of a rating method in words."""
    return _METHODS.get(method, method.replace("-", " "))


def status_words(status: str) -> str:
    """Return the status of a slope fit, or any other slug, in words."""
    return status.replace("-", " ").replace("_", " ")


def flag_words(flags: Any) -> list[str]:
    """Return the flags of a model, a ``;``-joined string, as words."""
    if pd.isna(flags):
        return []
    slugs = [slug.strip() for slug in str(flags).split(";")]
    return [_FLAGS.get(slug, _words(slug)) for slug in slugs if slug]


def _words(flag: str) -> str:
    return flag if flag.startswith(WITHHELD) else status_words(flag)  # it holds signed numbers
