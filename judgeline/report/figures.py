"""The report's figures: what each shows, in words and as a drawing.

A figure that cannot be drawn says why instead. Hard ratings are drawn in squares, soft ones in
dots, the headline in triangles, human ratings in hollow diamonds, the judge alone in hollow squares
and models without votes in stars, so that none depends on colour. Ratings and residuals are in Elo
points.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from judgeline.diagnostics import expected_calibration_error, reliability_curve
from judgeline.elo import HEADLINE, fit_beta
from judgeline.intervals import BY_JUDGE
from judgeline.report.drawing import Chart
from judgeline.report.wording import method_words, number, status_words

RULERS = {"hard": ("hard", "s"), "soft": ("soft", "o"), HEADLINE: ("headline", "^")}
"""The methods that figures compare, with their colours and markers."""
_NO_HUMAN_RATING = "Not drawn: no model has a human rating."


def draw_intervals(leaderboard: pd.DataFrame) -> Chart:
    """Draw ratings with their intervals, best on top, beside the ratings by votes and judge alone.

    Dashed intervals are the whole line.
    """
    table = leaderboard.reset_index(drop=True)
    new = table["evidence"].eq(BY_JUDGE)
    both = table["evidence"].str.startswith(BY_JUDGE) & ~new
    role = np.where(new, "new", "headline")
    ends = table[["lower", "upper"]].to_numpy(float)
    bounded = np.isfinite(ends).all(axis=1)
    shown = table[["lower", "upper", "rating", "human_rating", "judge_rating"]].to_numpy(float)
    shown = shown[np.isfinite(shown)]
    margin = 0.04 * max(float(np.ptp(shown)), 50.0)
    limits = float(shown.min()) - margin, float(shown.max()) + margin
    chart = Chart(
        "rating (Elo points)",
        names=table["model"].astype(str).tolist(),
        name_roles=dict.fromkeys(np.flatnonzero(new).tolist(), "new"),
        x_range=limits,
    )
    rows = np.arange(len(table))[:, None].repeat(2, axis=1)
    whole = np.tile(limits, (len(table), 1))
    for name in ("headline", "new"):
        held, unbounded = (role == name) & bounded, (role == name) & ~bounded
        chart.lines(ends[held], rows[held], name, width=2.2, opacity=0.45)
        chart.lines(whole[unbounded], rows[unbounded], name, width=1.0, dash="3 3", opacity=0.7)
    for rows, name, mark, size, label in (
        (both, "headline", "o", 5, "judge and votes"),
        (~both & ~new, "headline", "s", 5, "votes"),
        (new, "new", "*", 8, "judge, no votes"),
    ):
        group = table[rows]
        chart.marks(group["rating"], group.index, name, mark, size=size, label=label)
    rated = table[~new]
    chart.marks(rated["judge_rating"], rated.index, "muted", "s", hollow=True, label="judge alone")
    chart.marks(rated["human_rating"], rated.index, "ink", "D", hollow=True, label="votes alone")
    return chart


class Illustration(NamedTuple):
    """A figure of the report; without a drawing, the caption says why there is none."""

    title: str
    caption: str
    svg: str = ""

    @classmethod
    def of(
        cls, chart: Chart, key: str, title: str, caption: str, description: str
    ) -> "Illustration":
        """Return a chart with its texts."""
        return cls(title, caption, chart.svg(key=key, title=title, description=description))


@dataclass(frozen=True, repr=False)
class Picture:
    """A drawing as SVG, with its own colours: a notebook shows it, `save` writes it to a file."""

    svg: str
    title: str = ""

    def __repr__(self) -> str:
        """Return the figure's subject, in one line."""
        return f"<Picture: {self.title}; .save('board.svg') or .save('board.png') writes it>"

    def __str__(self) -> str:
        """Return the SVG."""
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: Path | str) -> None:
        """Write the drawing as SVG, or as PNG where the package cairosvg is installed.

        Raises
        ------
        ValueError
            If the name ends neither in .svg nor in .png, or PNG is asked for without cairosvg.
        """
        path = Path(path)
        if path.suffix == ".svg":
            path.write_text(self.svg, encoding="utf-8")
            return
        if path.suffix != ".png":
            raise ValueError(f"{path} ends neither in .svg nor in .png; name such as board.svg")
        try:
            import cairosvg
        except (ImportError, OSError) as error:  # OSError: its library of C is missing
            raise ValueError(
                "a PNG needs cairosvg (pip install cairosvg, and the library cairo); save it as "
                f"{path.with_suffix('.svg')}, which browsers and slides show too"
            ) from error
        colours = dict(re.findall(r"(--fig-\w+): (#\w+)", self.svg))
        plain = re.sub(r"var\((--fig-\w+)\)", lambda found: colours[found[1]], self.svg)
        wide = r'viewBox="0 0 (\d+)'  # cairo's letters are wider than a browser's
        plain = re.sub(wide, lambda box: f'viewBox="-40 0 {int(box[1]) + 40}', plain)
        cairosvg.svg2png(bytestring=plain.encode(), write_to=str(path), scale=2)


def picture(illustration: Illustration) -> Picture:
    """Return a figure that stands alone, in the colours of the report."""
    sheet = Path(__file__).with_name("templates").joinpath("style.css").read_text(encoding="utf-8")
    light = sheet[: sheet.index("@media")]
    colours = ";".join(re.findall(r"--fig-\w+: #\w+", light))
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" style="{colours};background:#fff" '
    return Picture(illustration.svg.replace("<svg ", opening, 1), illustration.title)


def interval_figure(leaderboard: pd.DataFrame, *, key: str, coverage: str) -> Illustration:
    """Return the ratings of a leaderboard with their intervals, in Elo points."""
    title = "Ratings and their intervals"
    rated = leaderboard[leaderboard["rating"].notna()]
    if rated.empty:
        return Illustration(title, "Not drawn: no model has a rating by this method.")
    caption = (
        f"Filled: the best rating with its {coverage} interval, from judge and votes (dots), votes "
        "(squares) or the judge (stars). Hollow: by votes alone (diamonds), by the judge as if "
        "nobody had voted (squares)."
    )
    unbounded = int(np.isinf(leaderboard[["lower", "upper"]]).any(axis=1).sum())
    if unbounded:
        caption += f" Dashed: {unbounded} of {len(leaderboard)} intervals are unbounded."
    best, worst = rated.iloc[0], rated.iloc[-1]
    description = (
        f"{len(leaderboard)} models from {best['model']} at {number(best['rating'])} Elo down to "
        f"{worst['model']} at {number(worst['rating'])} Elo."
    )
    return Illustration.of(draw_intervals(leaderboard), key, title, caption, description)


def ruler_figure(heldout: pd.DataFrame, *, key: str) -> Illustration:
    """Return judge rating against human rating, one mark per voted model and ruler."""
    title = "Judge rating by human rating"
    caption = (
        "Where the judge's preferences put a model (hard), where calibrated scores put it (soft), "
        "and where the headline does. On the line, judge and humans agree."
    )
    rated = _rated(heldout)
    if rated.empty:
        return Illustration(title, _NO_HUMAN_RATING)
    chart = Chart("human rating (Elo points)", "judge rating (Elo points)", height=317)
    ends = rated.groupby("human_rating")["rating"].agg(["min", "max"])
    chart.lines(np.column_stack([ends.index, ends.index]), ends, "grid")
    edges = [rated["human_rating"].min(), rated["human_rating"].max()]
    chart.lines(edges, edges, "muted", width=1, dash="4 3", label="agreement")
    slopes = _draw_methods(chart, rated, "rating", with_lines=False)
    description = f"Scatter of judge rating against human rating. {slopes}"
    return Illustration.of(chart, key, title, caption, description)


def residual_figure(heldout: pd.DataFrame, *, key: str) -> Illustration:
    """Return residual against human rating by every ruler: a ramp is a stretched one."""
    title = "Residual by human rating"
    rated = _rated(heldout)
    if rated.empty:
        return Illustration(title, _NO_HUMAN_RATING)
    chart = Chart("human rating (Elo points)", "residual (Elo points)", height=259)
    edges = [rated["human_rating"].min(), rated["human_rating"].max()]
    chart.lines(edges, 0, "muted", width=1, dash="4 3")
    slopes = _draw_methods(chart, rated, "residual", with_lines=True)
    caption = (
        "Judge rating minus human rating: a rising line means a stretched scale, a falling one "
        f"a compressed scale. {slopes}"
    )
    description = f"Scatter of residuals around zero with straight lines. {slopes}"
    return Illustration.of(chart, key, title, caption, description)


def _rated(heldout: pd.DataFrame) -> pd.DataFrame:
    return heldout[heldout["method"].isin(RULERS) & heldout["residual"].notna()]


def _draw_methods(chart: Chart, rated: pd.DataFrame, column: str, *, with_lines: bool) -> str:
    """Draw the marks of every ruler; return the sentence on their least-squares slopes."""
    groups = [(*style, rated[rated["method"] == name], name) for name, style in RULERS.items()]
    said = []
    for role, _, group, method in groups:
        x, y = group["human_rating"].to_numpy(float), group[column].to_numpy(float)
        if x.size < 3 or np.ptp(x) == 0:
            continue
        slope, level = np.polyfit(x - x.mean(), y, 1)
        said.append(f"{method_words(method)} {number(100 * slope, 1, signed=True)}")
        if with_lines:
            edges = np.array([x.min(), x.max()])
            chart.lines(edges, slope * edges + (level - slope * x.mean()), role, opacity=0.6)
    for role, mark, group, method in groups:
        label = method_words(method)
        chart.marks(group["human_rating"], group[column], role, mark, label=label)
    return f"Slopes in Elo per 100 human Elo: {', '.join(said)}." if said else ""


def reliability_figure(scored_battles: pd.DataFrame, *, key: str) -> Illustration:
    """Return the reliability figure: observed against predicted agreement of humans and judge.

    The predicted share is the logistic function of the pooled slope times the absolute score
    difference, in ten bins of equal mass.
    """
    title = "Reliability of the calibrated scores"
    score, outcome = scored_battles["score_difference"], scored_battles["human_outcome"]
    count = scored_battles.get("n_battles")
    fit = fit_beta(score, outcome, count)
    if fit.status != "ok":
        return Illustration(title, f"Not drawn: beta has no value ({status_words(fit.status)}).")
    bins = reliability_curve(score, outcome, fit.beta, count)
    gap = number(100 * expected_calibration_error(bins), 1)
    caption = (
        f"{bins.n.sum()} decisive votes in {bins.n.size} bins of equal mass, with "
        f"beta = {number(fit.beta, 3)} logits per rubric point from all votes; bars are 95 % "
        "Wilson intervals. The mean gap to the line, expected_calibration_error_of_votes, is "
        f"{gap} percentage points."
    )
    chart = Chart("predicted share of votes with the judge", "observed share", x_range=(0.48, 1.02))
    chart.lines([0.5, 1], [0.5, 1], "muted", width=1, dash="4 3", label="agreement")
    bounds = wilson_interval(bins.mean_y, bins.n)
    chart.lines(np.column_stack([bins.mean_x, bins.mean_x]), bounds.T, "soft", width=1)
    chart.marks(bins.mean_x, bins.mean_y, "soft", label="votes")
    return Illustration.of(chart, key, title, caption, caption)


def wilson_interval(share: NDArray[np.float64], n: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the ends of Wilson's (1927, JASA 22) 95 % interval of each share, shape (2, k)."""
    z = ndtri(0.975)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # At a share of 0 or 1 one end is the share itself; rounding must not cross it.
    return np.array([np.minimum(centre - half, share), np.maximum(centre + half, share)])


def beta_figure(beta_folds: pd.DataFrame, *, key: str) -> Illustration:
    """Return the slope of every fold, in logits per rubric point, with its standard error."""
    title = "Beta of every fold"
    usable = beta_folds[beta_folds["status"] == "ok"]
    if usable.empty:
        return Illustration(title, "Not drawn: no fold has a slope; see the flags.")
    caption = (
        "The slope from score difference to log-odds, fitted without the named model's votes; "
        "bars span one standard error either way. The vertical line is the median."
    )
    failed = len(beta_folds) - len(usable)
    if failed:
        caption += f" Crosses: {failed} of {len(beta_folds)} folds have no slope."
    table = beta_folds.sort_values("held_out_model").reset_index(drop=True)
    fitted = table[table["status"] == "ok"]
    chart = Chart("beta (logits per rubric point)", names=table["held_out_model"].tolist())
    chart.lines(usable["beta"].median(), [-0.6, len(table) - 0.4], "muted", width=1, dash="4 3")
    beta, error = fitted[["beta", "std_error"]].to_numpy(float).T
    rows = np.column_stack([fitted.index, fitted.index])
    chart.lines(np.column_stack([beta - error, beta + error]), rows, "soft", width=1)
    chart.marks(beta, fitted.index, "soft", size=5)
    without = table.index[table["status"] != "ok"]
    chart.marks(np.full(len(without), (beta - error).min()), without, "hard", "X", size=7)
    reach = f"{number(beta.min(), 3)} to {number(beta.max(), 3)}"
    description = f"{len(usable)} slopes from {reach} logits per rubric point."
    return Illustration.of(chart, key, title, caption, description)


def error_figure(summary: pd.DataFrame, *, key: str, ranking_method: str) -> Illustration:
    """Return the mean absolute error of every way to rate, in Elo points, best first."""
    title = "Error of every way to rate"
    table = summary[summary["mae"].notna()].sort_values("mae", kind="stable", ignore_index=True)
    if table.empty:
        return Illustration(title, _NO_HUMAN_RATING)
    caption = (
        "Mean absolute distance between judge rating and human rating, best first; the filled "
        f"dot ranks the leaderboard: {method_words(ranking_method)}."
    )
    errors, names = table["mae"].tolist(), table["method"].map(method_words).tolist()
    said = ", ".join(f"{name} {number(mae, 1)}" for name, mae in zip(names, errors, strict=True))
    reach = 0.0, 1.08 * max(errors) or 1.0
    chart = Chart("mean absolute error (Elo points)", names=names, x_range=reach)
    ends = np.column_stack([np.zeros(len(table)), table["mae"]])
    chart.lines(ends, np.column_stack([table.index, table.index]), "grid")
    ranking = table["method"] == ranking_method
    for rows, hollow in ((ranking, False), (~ranking, True)):
        group = table[rows]
        chart.marks(group["mae"], group.index, "headline", size=6, hollow=hollow)
    return Illustration.of(
        chart, key, title, caption, f"Mean absolute error in Elo points: {said}."
    )
