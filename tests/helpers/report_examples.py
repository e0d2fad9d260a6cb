"""A hand-made example of a judge's tables, and the page that is made of it."""

import math
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from judgeline.report import JudgeTables, write_report
from judgeline.report.battles import Evidence, Reading

SCRIPT = "<script>alert(1)</script>"
TABLES = yaml.safe_load(Path(__file__).with_name("report_example.yaml").read_text("utf-8"))
HUMAN_RATINGS = {model: human for model, (human, _) in TABLES["models"].items()}


def _table(name: str, **changes: object) -> pd.DataFrame:
    return pd.DataFrame(TABLES[name]).assign(**changes)


def _heldout(spread: float) -> pd.DataFrame:
    rows = [
        (model, method, rating, human)
        for model, (human, error) in TABLES["models"].items()
        for truth in [1520.0 if math.isnan(human) else human]
        for method, rating in {
            "human": human,
            "hard": 1500 + 1.6 * (truth - 1500) + error,
            "soft": 1500 + spread * (truth - 1500) + error,
            "auto": 1500 + spread * (truth - 1500) + error,
        }.items()
        if not math.isnan(rating)
    ]
    table = pd.DataFrame(rows, columns=["model", "method", "rating", "human_rating"])
    return table.assign(residual=table["rating"] - table["human_rating"], std_error=14.0)


def _leaderboard(heldout: pd.DataFrame, half_width: float) -> pd.DataFrame:
    """Voted models half way between judge and votes, with half of the judge's width."""
    board = heldout[heldout["method"] == "auto"].rename(columns={"rating": "judge_rating"})
    new = board["human_rating"].isna()
    rating = (board["judge_rating"] + board["human_rating"].fillna(board["judge_rating"])) / 2
    reach = np.where(new, half_width, half_width / 2)
    board = board.assign(
        rating=rating,
        lower=rating - reach,
        upper=rating + reach,
        evidence=np.where(new, "judge", "judge and 143 votes"),
        judge_lower=board["judge_rating"] - half_width,
        judge_upper=board["judge_rating"] + half_width,
        judge_std_error=14.0,
        human_std_error=np.where(new, math.nan, 20.0),
        basis=np.where(new, "gap: 13 others", "gap: 12 others"),
        n_battles=143,
        n_votes=np.where(new, 0, 143),
        flags=np.where(new, "no-votes", ""),
    )
    board = board.sort_values("rating", ascending=False).reset_index(drop=True)
    place = np.arange(len(board))
    return board.assign(
        rank=place + 1,
        best_rank=np.maximum(place - 2, 1),
        worst_rank=np.minimum(place + 3, len(board)),
        flags=np.where(place == 0, "judge-always-prefers", board["flags"]),
    )


def _battles(beta: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    score = np.rint(12 * rng.normal(0, 1.4, 800)) / 12
    won = rng.random(800) < 1 / (1 + np.exp(-beta * score))
    outcome = np.where(rng.random(800) < 0.15, 0.5, won.astype(float))
    outcome[::20] = np.nan
    return pd.DataFrame(
        {
            "battle_id": [f"b{row}" for row in range(800)],
            "human_outcome": outcome,
            "score_difference": score,
        }
    )


HOSTILE = (
    "</pre></dd></script><script>document.title='stolen'</script>",
    "<img src=x onerror=\"document.title='stolen'\"><svg onload=alert(1)>",
    "[link](javascript:alert(1)) ![i](x.png) **bold** `code` {{ 7 * 7 }}",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202etxet desrever\u202c \U000e0041 \x00\x9b",
    "x" * 3_000,
)
"""Texts that want to be more than text."""


def example_battles(models: int = 3) -> list[Evidence]:
    """Two battles each way of some models, with texts that want to be more."""
    return [
        Evidence(
            model=model,
            opponent=SCRIPT,
            battle_id=f"battle-{place}-{influence}",
            influence=influence,
            outcome=0.9,
            expected=0.4,
            human_outcome=None if place else 1.0,
            language="en",
            instruction=HOSTILE[place % 5],
            completion=HOSTILE[(place + 1) % 5],
            opponent_completion=HOSTILE[(place + 2) % 5],
            readings=(
                Reading("AB", 0, "ok", model, 2.5, HOSTILE[(place + 3) % 5], "a" * 64, 9, 9),
                Reading("BA", 0, "parse_error", SCRIPT, None, HOSTILE[4], "b" * 64, 9, 9),
            ),
        )
        for place, model in enumerate(list(HUMAN_RATINGS)[:models])
        for influence in (1.5, 1.25, -1.75, -0.5)
    ]


def example_judge(
    slug: str = "careful",
    name: str = "Careful judge",
    *,
    spread: float = 0.97,
    soft_error: float = 19.5,
    threshold: float = 3.2,
    note: str = "",
    beta: float = 0.66,
) -> JudgeTables:
    heldout = _heldout(spread)
    models = sorted(HUMAN_RATINGS)
    status = np.where(np.arange(14) == 3, "separable", "ok") if slug == "noisy" else "ok"
    folds = pd.DataFrame(
        {
            "held_out_model": models, "beta": beta + 0.01 * np.sin(np.arange(14)),
            "std_error": 0.045, "n_battles": 540, "status": status,
        }
    )  # fmt: skip
    folds.loc[folds["status"] != "ok", ["beta", "std_error"]] = math.nan
    return JudgeTables(
        judge=slug,
        display_name=name,
        leaderboard=_leaderboard(heldout, 14.0 * threshold),
        heldout_ratings=heldout,
        beta_folds=folds,
        conformal_calibration=_table(
            "conformal",
            threshold=[4.86, threshold, threshold],
            median_width=[306.4, 2 * 14 * threshold, 2 * 14 * threshold],
            note=["", note, note],
        ),
        summary=_table("summary", mae=[57.6, soft_error, soft_error]),
        judge_diagnostics=_table("diagnostics"),
        scored_battles=_battles(beta, seed=len(slug)),
        checks=_table("checks") if slug == "careful" else None,
        battles=example_battles() if slug == "careful" else [],
        origin={"prompt version": "1", "judge revision": SCRIPT},
        runs=_table("runs"),
    )


TOO_FEW = "95 % coverage needs at least 19 models to calibrate, there are 13"


def example_judges() -> list[JudgeTables]:
    noisy = example_judge(
        "noisy", "Noisy judge <b>", spread=0.4, soft_error=61.3, threshold=math.inf, note=TOO_FEW,
        beta=0.31,
    )  # fmt: skip
    return [example_judge(), noisy]


def example_comparison() -> pd.DataFrame:
    return _table("comparison")


def write(path: Path, judges: list[JudgeTables] | None = None, **changes: object) -> str:
    """Write a report and return it."""
    arguments: dict[str, object] = {
        "title": "Judges of an example",
        "corpus_name": "Example",
        "simulated": False,
        "judges": example_judges() if judges is None else judges,
        "provenance": {"corpus": "example", "<i>seed</i>": "<img src=x onerror=alert(2)>"},
        "comparison": example_comparison(),
    }
    return write_report(path, **{**arguments, **changes}).read_text(encoding="utf-8")


class Page(HTMLParser):
    """Elements and attributes as a browser's parser would find them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(" ".join(data.split()))
