"""Judged battles in, a board out: what a notebook and `judgeline rank` call.

What belongs here: the order of the steps, the gate that a judge must pass, and the files that
come out. What does not: statistics, and reading (`judgeline.io`).
"""

import hashlib
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.comparing import compare_on
from judgeline.diagnosis import Diagnosis, doctor
from judgeline.elo import (
    HEADLINE,
    JUDGE_METHODS,
    BetaFolds,
    HeldOutRatings,
    Ties,
    connected_components,
    fit_beta_folds,
    is_baseline,
    require_connected,
    summarise,
    with_settled_votes,
)
from judgeline.gating import ReleaseGate, gate_on
from judgeline.intervals import Difference, Leaderboard, withheld_reason
from judgeline.io import (
    COUNT,
    OF_A_TABLE,
    ArgumentError,
    JudgedBattles,
    as_coded,
    as_table,
    by_question,
    by_score,
    common_battles,
    files_of,
    n_battles_of,
    plain_ratings,
    read_answers,
    score_battles,
    write_together,
)
from judgeline.io.verdict_tables import (
    CHOICES,
    battles_given,
    embeddings_given,
    on_scale,
    panel_of,
    runs_given,
    scores_given,
    verdicts_given,
)
from judgeline.planning import Plan, Prices, Rated, plan_of
from judgeline.rating_options import STATED
from judgeline.reliability import STRONG_JUDGE, hold_to
from judgeline.report import (
    JudgeTables,
    Picture,
    changes_text,
    in_csv,
    interval_figure,
    picture,
    unvoted_text,
    write_report,
)
from judgeline.settings import Settings
from judgeline.steps import STEPS, run
from judgeline.steps.coding import coded, once, said_family, units
from judgeline.steps.comparison import pooled_board
from judgeline.steps.rationales import learnt
from judgeline.steps.reference import anchored
from judgeline.steps.reliability import repeated_measurements, weakness
from judgeline.steps.step import as_columns
from judgeline.suggest import QualityGateError
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.tables.diagnostics import JUDGE_DIAGNOSTICS
from judgeline.uncalibrated import agreement, plain, with_shares
from judgeline.usable import (
    UnusableJudgeError,
    printable,
    readable,
    require_usable,
    table_or_path,
)
from judgeline.voting import (
    IDENTIFIED,
    VotePage,
    WithVotes,
    join_votes,
    parse_goal,
    read_votes,
    require_raters,
    with_ids,
    write_page,
)
from judgeline.winrate import pass_rates as rate_answers
from judgeline.winrate import split_of_labels

__all__ = [
    "Board",
    "Diagnosis",
    "LearntJudge",
    "LearntRatings",
    "Plan",
    "QualityGateError",
    "Ranking",
    "ReleaseGate",
    "Settings",
    "UnusableJudgeError",
    "VotePage",
    "agreement",
    "ask",
    "consistency",
    "doctor",
    "gate",
    "judge_gate",
    "learn_judge",
    "learn_ratings",
    "pass_rates",
    "plain",
    "plan",
    "pool",
    "rank",
    "rank_battles",
    "rank_file",
    "reference_ratings",
    "score",
    "split_labels",
    "vote",
    "win_rates",
]

LEADERBOARD = "leaderboard.csv"
HELDOUT_COLUMNS = (
    "model",
    "method",
    "human_rating",
    "judge_rating",
    "residual",
    "std_error",
    "std_error_analytic",
    "beta",
    "n_battles",
    "flags",
)

_PANEL = ("battle_id", "replicate", "score_difference", "judge_outcome")

_DRAWN = ("battles of one question are drawn together", "battles are taken as independent")


class Ranking(NamedTuple):
    """The ratings of one judge's battles; one table per result of the core."""

    leaderboard: pd.DataFrame
    heldout_ratings: pd.DataFrame
    beta_folds: pd.DataFrame
    conformal_calibration: pd.DataFrame
    summary: pd.DataFrame
    judge_diagnostics: pd.DataFrame


@dataclass(frozen=True)
class Board:
    """The models of one judge's battles, rated on the human Elo scale.

    Attributes
    ----------
    ranking : Ranking
        Every table, Elo points.
    battles : JudgedBattles
        The battles that count, the rows set aside, and how many there are of each.
    settings : Settings
        How the models were rated.
    source : str
        Name of the file, or of what else was read.
    digest : str
        SHA-256 of the file; empty where there is none.
    files : dict of str to Path
        What was written, by name.
    command : str
        The command line that made it, as typed; empty in Python.
    """

    ranking: Ranking
    battles: JudgedBattles
    settings: Settings
    source: str
    digest: str = ""
    files: dict[str, Path] = field(default_factory=dict)
    command: str = ""

    @property
    def leaderboard(self) -> pd.DataFrame:
        """A model per row: rank, best rating and its interval in Elo points, evidence, flags."""
        return self.ranking.leaderboard

    @property
    def heldout(self) -> pd.DataFrame:
        """A model and method per row, `HELDOUT_COLUMNS`; residuals are judge minus human."""
        table = self.ranking.heldout_ratings
        rated = table[table["method"].ne("human")].rename(columns={"rating": "judge_rating"})
        return rated[list(HELDOUT_COLUMNS)]

    @property
    def summary(self) -> pd.DataFrame:
        """A method per row: error in Elo points, correlations with the human ratings, slope."""
        return self.ranking.summary

    @property
    def coverage(self) -> pd.DataFrame:
        """A method per row: its threshold, its widths, and its coverage on splits of the models."""
        return self.ranking.conformal_calibration

    @property
    def withheld(self) -> str:
        """Why no number of the judge is shown; empty where its ratings stand on the board."""
        return withheld_reason(str(self.leaderboard["flags"].iloc[0]))

    def compare(self, model_a: str, model_b: str) -> Difference:
        """Compare two models: which is above, or that it cannot be told, and what would tell.

        Parameters
        ----------
        model_a, model_b : str
            Names on the leaderboard.

        Returns
        -------
        Difference
            Rating of a minus that of b in Elo points, with its interval; `answer` is ``"a above"``,
            ``"b above"`` or ``"cannot tell"``, and `lines` says it in sentences.

        Raises
        ------
        ValueError
            If a name is unknown (close ones are named), both are one, or a model has no rating.
        """
        miscoverage = self.settings.miscoverage
        return compare_on(self.leaderboard, model_a, model_b, miscoverage=miscoverage)

    def __repr__(self) -> str:
        """Return the first models with their intervals in a line, not every table."""
        first = self.leaderboard[["model", "rating", "lower", "upper"]].head(3)
        best = ", ".join(
            f"{model} {rating:.0f} [{lower:.0f}, {upper:.0f}]"
            for model, rating, lower, upper in first.itertuples(index=False)
        )
        new = unvoted_text(self.leaderboard)
        all_of_it = f"{best}, ... ({len(self.leaderboard)} models)"
        return printable(f"<Board of {self.source}: {f'{new} Best: ' * bool(new)}{all_of_it}>")

    def _repr_html_(self) -> str:
        """Return the leaderboard as HTML for a notebook; names of models are escaped."""
        table = self.leaderboard[["rank", "model", "rating", "lower", "upper", "evidence", "flags"]]
        return str(table.to_html(index=False, float_format="{:.0f}".format))

    def plot(self) -> Picture:
        """Draw the ratings with their intervals beside the human ratings, as text in SVG."""
        promised = f"{1 - self.settings.miscoverage:.0%}"
        return picture(interval_figure(self.leaderboard, key="board", coverage=promised))

    def to_html(self, path: Path | str) -> None:
        """Write the report: one page with figures that loads nothing from elsewhere."""
        alike = by_score(self.battles.scored)
        tables = JudgeTables(
            judge=self.battles.judge,
            display_name=self.battles.judge,
            scored_battles=alike.assign(battle_id=None) if self.battles.is_counted else alike,
            **self.ranking._asdict(),
        )
        write_report(
            Path(path),
            title=f"Ratings from {self.source}",
            corpus_name=self.source,
            simulated=False,
            judges=[tables],
            provenance=self._provenance(),
            comparison=None,
        )

    def _provenance(self) -> Mapping[str, str]:
        battles = self.battles
        account = f"{battles.n_battles} scored, {battles.n_quarantined} rows quarantined"
        used = self.settings.resolved(battles.n_battles, counted=battles.is_counted)
        packages = ("judgeline", "numpy", "scipy", "pandas")
        return {
            **({"command": self.command} if self.command else {}),
            "file": self.source,
            **({"sha256": self.digest} if self.digest else {}),
            "battles": f"{account}, {battles.n_unscored} without usable scores, "
            f"{battles.n_repeated} equal to an earlier row in the columns that were read",
            "outcomes": battles.outcomes,
            **({"look at": "; ".join(battles.notes)} if battles.notes else {}),
            **{name: str(getattr(used, name)) for name in STATED},
            "questions": _DRAWN[units(battles.scored, used) is None],
            "methods": ", ".join(self.settings.methods) or "all but the smoothed ones",
            "versions": ", ".join(f"{name} {version(name)}" for name in packages),
        }


_BY_DEFAULT = Settings()


def _settled(settings: Settings, **own: Any) -> Settings:
    """Return settings with those that an argument of its own gives."""
    if not isinstance(settings, Settings):
        raise ArgumentError(
            f"settings is of type {type(settings).__name__}; expected judgeline.Settings(...), or "
            "miscoverage=0.2, seed=1, method='soft' as arguments",
            "settings",
        )
    return replace(settings, **{name: value for name, value in own.items() if value is not None})


def rank(
    battles: pd.DataFrame | Path | str,
    settings: Settings = _BY_DEFAULT,
    *,
    miscoverage: float | None = None,
    seed: int | None = None,
    method: str | None = None,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    allow_quarantine: bool = False,
    component: int | None = None,
    missing: Any = None,
    same_names: bool = False,
    votes: Sequence[Path | str] = (),
) -> Board:
    """Rate the models of judged battles.

    Parameters
    ----------
    battles : DataFrame, Path or str
        Battles with ``model_a``, ``model_b``, votes as ``human_outcome`` (A's share of the win: 1,
        0.5, 0, null for no vote) or ``winner`` (model_a, model_b, tie, a model's name), and
        ``score_difference`` (judge score of A minus B), or in its place ``judge_score_a`` and
        ``judge_score_b`` or plain verdicts (``judge_outcome``, ``judge_winner``, ``verdict``);
        or a file of these or of Soft-Elo annotations. ``n_battles`` says how many battles are
        alike and stand in one row; Parquet files of 5 million rows and more are counted so.
    settings : Settings
        How to rate.
    miscoverage, seed, method : optional
        Settings of these names, in place of those in `settings`.
    judge : str, optional
        Which judge, where there are several.
    outcomes : str, optional
        Codes of outcomes, such as ``"1/-1/0"``: A's, B's, then any of ties.
    columns : mapping of str to str, optional
        The file's own name of a column, such as ``{"human_outcome": "label"}``.
    allow_quarantine : bool
        Whether to rate what is left where many outcomes are unknown or scores NaN.
    missing : str, number or sequence of these, optional
        Values that stand for failed verdicts, such as ``-1`` or ``"error"``; ``"nothing"`` if
        every number is a score, though one stands apart from the others.
    same_names : bool
        Whether names that differ only in case, blanks, hyphens, quotes, invisible characters or
        the provider's prefix are one model, under the most frequent.
    component : int, optional
        Which set of models to rate, where votes tie them to several sets; 0 is the largest. A model
        without votes belongs to each set that it met.
    votes : sequence of Path or str
        Files of votes that a page of `vote` saved for these battles.

    Returns
    -------
    Board
        Ratings, residuals and intervals in Elo points.

    Raises
    ------
    ValueError
        If the battles, a column or a setting is unusable, or unknown outcomes and NaN scores
        lose more rows than is allowed; the message says what to do.
    QualityGateError
        If the judge fails the gate (no positive, finite slope in every fold), or most rows
        cannot be used.
    """
    told: dict[str, Any] = {"missing": missing, "same_names": same_names}
    told |= {"allow_quarantine": allow_quarantine, "counted": True}
    settings = _settled(settings, miscoverage=miscoverage, seed=seed, method=method)
    battles = table_or_path(battles)
    read = _read(battles, votes, component, judge, outcomes, columns, **told).battles
    ranking = rank_battles(read.scored, settings, judge=read.judge)
    if isinstance(battles, pd.DataFrame):
        return Board(ranking, read, settings, _source("a table", component))
    return Board(ranking, read, settings, _source(battles.name, component), _digest(battles))


def gate(
    battles: Board | pd.DataFrame | Path | str,
    *,
    new: str,
    current: str,
    margin: float,
    error: float = 0.05,
    looks: int | None = None,
    ledger: Path | str | None = None,
    same_maker: bool = False,
) -> ReleaseGate:
    """Say whether a new model is at most a margin worse than the current one.

    Parameters
    ----------
    battles : Board, DataFrame, Path or str
        A board of `rank`, or battles as `rank` takes them.
    new, current : str
        Names of the two models.
    margin : float
        Elo points by which the new model may be worse, 0 or more.
    error : float
        Probability, in [1e-6, 1/2), that any of all looks passes a model that is worse than the
        margin, or calls one worse that is not.
    looks : int, optional
        Number of looks that are planned; without it each spends less than the one before.
    ledger : Path or str, optional
        File that counts the looks; without it the answer holds for a single look.
    same_maker : bool
        Whether a judge of the new model's maker may decide.

    Returns
    -------
    ReleaseGate
        `decision` is ``"better than -margin"``, ``"worse"`` or ``"cannot tell yet"``; `passes`
        says the first, and `lines` what would tell.

    Raises
    ------
    ValueError
        If a name or number is unusable, the judge is of the new model's maker, a model has no votes
        and fewer than 12 models have, or the ledger is damaged, of another plan or spent.
    QualityGateError
        As of `rank`.

    References
    ----------
    docs/gate.md; K. K. G. Lan and D. L. DeMets (1983), Biometrika 70(3), for several looks.
    """
    board = battles if isinstance(battles, Board) else rank(battles)
    settings = board.settings
    return gate_on(
        board.leaderboard, new, current,
        margin=margin,
        miscoverage=settings.miscoverage,
        error=error,
        looks=looks,
        ledger=None if ledger is None else Path(ledger),
        judge=said_family(settings.judge_family) or board.battles.judge,
        families=settings.families,
        same_maker=same_maker,
    )  # fmt: skip


def win_rates(
    battles: pd.DataFrame | Path | str,
    *,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    allow_quarantine: bool = False,
    miscoverage: float = 0.1,
    missing: Any = None,
    same_names: bool = False,
) -> pd.DataFrame:
    """Estimate the share of battles that each model would win in the eyes of people.

    Parameters
    ----------
    battles, judge, outcomes, columns, allow_quarantine, missing, same_names
        As for `rank`.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).

    Returns
    -------
    DataFrame
        Columns of `judgeline.winrate.ModelWinRates`, a row per model and estimator; `headline`
        marks the row to read, `basis` says its assumption.

    Raises
    ------
    ValueError
        If the battles cannot be read, or nobody voted on them.
    QualityGateError
        If most rows cannot be used.
    """
    lenient = {"allow_quarantine": allow_quarantine, "missing": missing, "same_names": same_names}
    scored = readable(battles, judge, outcomes, columns, **lenient).scored
    if scored["human_outcome"].isna().all():
        raise ValueError("nobody voted on these battles: add human_outcome on some of them")
    given = {"scored_battles": scored}
    return run(["adjusted_win_rates"], given, Settings(miscoverage=miscoverage))[
        "adjusted_win_rates"
    ]


def pass_rates(
    answers: pd.DataFrame | Path | str,
    *,
    columns: Mapping[str, str] | None = None,
    miscoverage: float = 0.1,
) -> pd.DataFrame:
    """Estimate the share of a system's answers that people would pass.

    Parameters
    ----------
    answers : DataFrame, Path or str
        An answer per row: ``verdict``, the judge's (pass or fail, true or false, 1 or 0),
        ``label``, a person's in the same codes, empty where nobody looked, and ``system`` where
        there are several; or a file of these.
    columns : mapping of str to str, optional
        The table's own name of a column, such as ``{"label": "reviewed"}``.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).

    Returns
    -------
    DataFrame
        Columns of `judgeline.winrate.PassRates`, a row per system and estimator; `headline`
        marks the row to read, `basis` says its assumption.

    Raises
    ------
    ValueError
        If the file cannot be read, lacks a column, or a value is no pass and no fail.
    """
    read = read_answers(table_or_path(answers, "answers"), columns or {})
    rates = rate_answers(read["system"], read["verdict"], read["label"], miscoverage=miscoverage)
    return as_table(rates)


def split_labels(
    answers: pd.DataFrame | Path | str,
    *,
    n_labels: int,
    columns: Mapping[str, str] | None = None,
    miscoverage: float = 0.1,
) -> pd.DataFrame:
    """Divide labels that are to be bought between answers that people pass and that they fail.

    Parameters
    ----------
    answers, columns, miscoverage
        As for `pass_rates`; the labels at hand, a few of either kind, are the pilot.
    n_labels : int
        Labels of each system in all, those at hand included.

    Returns
    -------
    DataFrame
        Columns of `judgeline.winrate.LabelSplits`, a row per system, with the half-width that the
        published correction is then to be expected to have.

    Raises
    ------
    ValueError
        As of `pass_rates`, and if a system has more labels already.
    """
    read = read_answers(answers, columns or {})
    given = read["system"], read["verdict"], read["label"]
    return as_table(split_of_labels(*given, n_labels=n_labels, miscoverage=miscoverage))


def reference_ratings(
    battles: pd.DataFrame | Path | str,
    reference: str | None = None,
    *,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    allow_quarantine: bool = False,
    miscoverage: float = 0.1,
    missing: Any = None,
    same_names: bool = False,
) -> pd.DataFrame:
    """Rate models by a judge's verdicts against one model, which is 0. Votes do not count.

    Parameters
    ----------
    battles, judge, outcomes, columns, allow_quarantine, missing, same_names
        As for `rank`. A prompt is a ``question_id``; without it each battle is one.
    reference : str, optional
        Name of that model; by default the one whose least-met opponent it met most often.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).

    Returns
    -------
    DataFrame
        A model per row, best first: ``gap`` with ``lower``, ``upper`` and ``std_error`` in Elo
        points above the reference, ``n_prompts``, wins, ties and losses, ``flags``.

    Raises
    ------
    ValueError
        If the battles cannot be read, or none of them has the reference.
    QualityGateError
        If most rows cannot be used.
    """
    lenient = {"allow_quarantine": allow_quarantine, "with_votes": False}
    lenient |= {"missing": missing, "same_names": same_names}
    scored = with_shares(readable(battles, judge, outcomes, columns, **lenient).scored)
    settings = Settings(reference_model=reference, miscoverage=miscoverage)
    names = pd.Series([f"battle {place}" for place in range(len(scored))], index=scored.index)
    prompts = scored.assign(battle_id=names, question_id=scored["question_id"].fillna(names))
    ratings = anchored(prompts, None, prompts, settings).ratings
    first = ["rank", "model", "gap", "lower", "upper", "std_error", "n_prompts"]
    return ratings[first + ratings.columns.difference(first, sort=False).tolist()]


def judge_gate(
    battles: pd.DataFrame | Path | str,
    *,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    allow_quarantine: bool = False,
    verdicts: pd.DataFrame | None = None,
    replicates: str | Mapping[Any, pd.DataFrame] | None = None,
    thresholds: Mapping[str, float | None] | None = None,
    withhold: str | Sequence[str] = ("skill",),
    missing: Any = None,
    same_names: bool = False,
) -> pd.DataFrame:
    """Hold a judge to the criteria that decide whether its ratings may be shown.

    Parameters
    ----------
    battles, judge, outcomes, columns, allow_quarantine, missing, same_names
        As for `rank`.
    verdicts : DataFrame, optional
        Its single answers, as `ask` returns them, for the share that could be read.
    replicates : str or mapping of DataFrame, optional
        The judge's further runs on some of the battles, for its reliability: tables like `battles`
        by name, or the column of `battles` that numbers the runs, whose first one is rated by.
        Battles are the same in two runs if their ``battle_id`` is; votes may be missing.
    thresholds : mapping of str to float or None, optional
        Limits by criterion, None for no limit; those of `judgeline.reliability` by default.
    withhold : sequence of str
        Criteria whose failure withholds the judge's ratings.

    Returns
    -------
    DataFrame
        A criterion per row: value, threshold, whether it passes (null where it was not measured).

    Raises
    ------
    ValueError
        If the battles cannot be read or rated, or a criterion is unknown.
    QualityGateError
        If most rows cannot be used.
    """
    limits = dict(thresholds or {})
    if odd := [name for name, limit in limits.items() if not isinstance(limit, float | int | None)]:
        raise ArgumentError(
            f"the threshold of {odd[0]!r} is {limits[odd[0]]!r}; expected a number, or None",
            "thresholds",
        )
    withholding = (withhold,) if isinstance(withhold, str) else tuple(withhold)
    settings = Settings(thresholds=limits, withhold=withholding)
    lenient = {"allow_quarantine": allow_quarantine, "missing": missing, "same_names": same_names}
    named = judge, outcomes, columns
    first, *further = runs_given(battles, replicates, (columns or {}).get("battle_id", "battle_id"))
    scored = readable(first, *named, **lenient).scored
    given = _usable(scored, settings)
    if further:
        again = [readable(run, *named, with_votes=False, **lenient).scored for run in further]
        given["reliability_panel"] = panel_of([scored, *again])
    if verdicts is not None:
        if "status" not in getattr(verdicts, "columns", ()):
            raise ArgumentError(
                "verdicts has no column status; pass what judgeline.ask returned", "verdicts"
            )
        given["verdicts"] = verdicts
    return run(["judge_gate"], given, settings)["judge_gate"]


def ask(
    battles: pd.DataFrame,
    judge: Mapping[str, Any],
    *,
    form: str = "rubric",
    budget: str | Sequence[str] | None = None,
    n_replicates: int | None = None,
    retry: str | Sequence[str] = (),
    store: str | Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Ask a judge about battles, in both orders; needs the extra ``judges``.

    The same question of the same judge is not bought again: not by the next call, not after a kill,
    and not by the lineage, which has the same store. An answer is stored within two seconds; a kill
    loses those of the last two seconds and those in flight, and nothing else.

    Parameters
    ----------
    battles : DataFrame
        A battle per row: ``battle_id``, ``question_id``, ``model_a``, ``model_b``,
        ``instruction``, ``completion_a``, ``completion_b``.
    judge : mapping
        Keys of an entry of `judges.yaml` (docs/judges.md): ``model``, and as needed ``base_url``,
        ``api_key_env``, ``decoding``, ``price_per_million``, ...; kind ``openai`` unless it says
        ``vllm``. Keys of an endpoint come from the environment.
    form : str
        ``rubric`` or ``choice``, of which `score` and `rank` make a board, or ``score`` for one
        number about each answer (`consistency`, `learn_judge`).
    budget : str or sequence of str, optional
        Cap on this call: ``"500calls"``, ``"2Mtokens"``, ``"5USD"``, or ``"none"``. Without one
        nothing that an endpoint may bill is asked, and the error says what it would take. What an
        endpoint can do is found out once, by a few small requests beside the cap.
    n_replicates : int, optional
        How often each presentation is asked; the judge's ``replicates``, 1 by default.
    retry : str or sequence of str, optional
        Failures that are asked again each time, such as ``"refusal"`` (docs/verdicts.md), beside
        ``"transport"``; those cut short, unreadable or echoed are asked once more by themselves.
    store : str or Path, optional
        Folder or URI of the answers; that of the lineage by default (``JUDGELINE_VERDICTS``).
    tell : callable, optional
        Gets the plan with its price, and then the progress, line by line; by default they are
        written to the standard error.

    Returns
    -------
    DataFrame
        An answer per row, with the columns of the form's table (`judgeline.tables.judging`, for
        ``rubric`` `VERDICTS`). Failed ones have a ``status`` other than ``ok`` and no value.

    Raises
    ------
    ValueError
        If battles or judge lack something, or no budget is given.
    judgeline.judges.buying.BudgetError
        If the budget ran out; what was bought is stored, and the next call goes on.
    ImportError
        If the extra ``judges`` is not installed.
    """
    needed = ("aiohttp", "filelock", "httpx2", "openai", "pydantic", "truststore", "upath")
    if missing := [name for name in needed if find_spec(name) is None]:
        raise ImportError(
            f"judgeline.ask needs {', '.join(missing)}: pip install 'judgeline[judges]', or in a "
            "clone pip install '.[judges]'"
        )
    from judgeline.judges.ask import ask_judge

    return ask_judge(
        battles,
        judge,
        form=form,
        budget=budget,
        n_replicates=n_replicates,
        retry=(retry,) if isinstance(retry, str) else retry,
        store=store,
        tell=tell,
    )


def score(battles: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return battles with the scores and outcomes of a judge's verdicts, ready for `rank`.

    Parameters
    ----------
    battles : DataFrame
        As for `ask`; ``human_outcome``, A's share of the win in people's eyes, is kept.
    verdicts : DataFrame
        What `ask` returned for them in form ``rubric``, or ``choice``, which counts as a win, loss
        or tie.

    Returns
    -------
    DataFrame
        One row per battle that has an answer in both orders: ``score_difference`` in rubric
        points, of choices the wins less the losses; ``judge_outcome``, A's share of the win, both
        orders, lengths, names and votes.

    Raises
    ------
    ValueError
        If a column is missing, verdicts of several judges come in, or no battle has both orders.
    """
    known = battles_given(battles)
    if "winner" in known and known["human_outcome"].isna().all():
        raise ArgumentError(
            "battles has winner and no human_outcome; name people's votes human_outcome, A's share "
            "of the win: 1, 0.5 or 0",
            "battles",
        )
    said = (*SCORE_COLUMNS, "recorded_outcome")
    columns = {*getattr(verdicts, "columns", ())}
    if "choice" in columns and columns.isdisjoint(said):
        verdicts = verdicts.assign(recorded_outcome=verdicts["choice"])
    elif "completion_id" in columns and columns.isdisjoint(said):
        raise ArgumentError(
            "verdicts holds scores of single answers, of which no board is made: ask with form "
            "'rubric' or 'choice', or give them to judgeline.consistency as score_verdicts",
            "verdicts",
        )
    given = verdicts_given(verdicts, known, said, "verdicts")
    scored = score_battles(known, given)
    if scored.empty:
        raise ArgumentError(
            f"no battle has an answer in both orders: {int(given['status'].ne('ok').sum())} of "
            f"{len(given)} verdicts failed; their status and said tell why",
            "verdicts",
        )
    return scored


def consistency(
    battles: pd.DataFrame,
    *,
    choice_verdicts: pd.DataFrame | None = None,
    score_verdicts: pd.DataFrame | None = None,
    verdicts: pd.DataFrame | None = None,
    scale: tuple[int, int] = (1, 100),
    tolerance: float = 0.0,
) -> pd.DataFrame:
    """Measure how often a judge contradicts itself: the two inconsistency ratios of TrustJudge.

    Parameters
    ----------
    battles : DataFrame
        ``battle_id``, ``question_id``, ``model_a`` and ``model_b``; ``category`` or ``language``
        split the ratios.
    choice_verdicts : DataFrame, optional
        Comparisons: ``battle_id``, ``order`` (AB, BA, or mean), and ``choice`` (A's share: 1, 0.5,
        0) or its probabilities ``p_a``, ``p_tie`` and ``p_b``.
    score_verdicts : DataFrame, optional
        Scores of single answers: ``question_id``, ``model`` and ``score``, or ``expected_score``
        in points of 1 to 10; with ``completion_id`` where a model answered a question twice.
    verdicts : DataFrame, optional
        Comparisons by the rubric: ``battle_id``, ``order`` and a score of each criterion.
    scale : tuple of int
        Lowest and highest ``score``.
    tolerance : float
        As in `Settings`.

    Returns
    -------
    DataFrame
        A ``ratio`` per row, as a share of the ``n`` that were counted. ``conflict-ratio`` counts
        battles whose scores and comparison differ, ``non-transitivity`` subsets of ``size``
        answers to one question whose comparisons are no ranking.

    Raises
    ------
    ValueError
        If there are no comparisons, or a table lacks a column or has a value of another kind.
    """
    own = battles_given(battles)
    given: dict[str, pd.DataFrame] = {}
    if choice_verdicts is None and verdicts is None:
        raise ArgumentError(
            "only comparisons can contradict scores or each other: add 'choice_verdicts' or "
            "'verdicts'",
            "choice_verdicts",
        )
    for name, table, values in (
        ("choice_verdicts", choice_verdicts, CHOICES),
        ("verdicts", verdicts, SCORE_COLUMNS),
    ):
        if table is not None:
            given[name] = verdicts_given(table, own, values, name)
    if score_verdicts is not None:
        name = "score_verdicts"
        scores, own = scores_given(score_verdicts, battles, ("score", "expected_score"), name)
        given[name] = on_scale(scores, scale, name)
    settings = Settings(scale=scale, tolerance=tolerance)
    return run(["consistency"], {"sampled_battles": own, **given}, settings)["consistency"]


class LearntJudge(NamedTuple):
    """A judge that learnt from votes and from the reasons of a base judge.

    Attributes
    ----------
    outcomes : DataFrame
        A's probability of winning by ``held_out_model``, ``battle_id`` and ``method``, by a fit
        that saw no vote on that model or on the battle's question.
    agreement : DataFrame
        A ``metric`` of agreement with votes by ``method`` and number of votes learnt from
        (``n_train``), beside that of ``score_only`` and of the ``base`` judge.
    note : str
        Why a method is missing.
    """

    outcomes: pd.DataFrame
    agreement: pd.DataFrame
    note: str


def learn_judge(
    battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    *,
    score_verdicts: pd.DataFrame | None = None,
    seed: int = 0,
) -> LearntJudge:
    """Learn a quantitative judge from votes and the reasons that a judge gave.

    Parameters
    ----------
    battles : DataFrame
        ``battle_id``, ``question_id``, ``model_a``, ``model_b`` and votes as ``human_outcome``.
    verdicts : DataFrame
        ``battle_id``, ``order`` (AB, BA), the rubric's scores or ``recorded_outcome`` (A's share:
        1, 0.5, 0), and ``embedding``, the vector of the reason, for method ``btl``.
    score_verdicts : DataFrame, optional
        Scores of single answers as for `consistency`, ``expected_score`` in points of 1 to 10, with
        ``embedding``, for method ``btl2``.
    seed : int
        Seed of folds and training sets.

    Returns
    -------
    LearntJudge
        Outcomes, and how well they agree with votes.

    Raises
    ------
    ValueError
        If a table lacks a column or has a value of another kind, or there are too few votes.
    """
    own = battles_given(battles, ["human_outcome"])
    values = (*SCORE_COLUMNS, "recorded_outcome")
    answers = verdicts_given(verdicts, own, values, "verdicts")
    given = {"verdicts": answers.drop(columns="embedding", errors="ignore")}
    embeddings = [embeddings_given(answers, "verdict", "verdicts")]
    if score_verdicts is not None:
        name = "score_verdicts"
        scores, own = scores_given(score_verdicts, battles, ["expected_score"], name)
        embeddings.append(embeddings_given(scores, "score", name))
        given[name] = scores.drop(columns="embedding")
    given |= {"sampled_battles": own, "scored_battles": score_battles(own, given["verdicts"])}
    given["rationale_embeddings"] = pd.concat(embeddings, ignore_index=True)
    names, settings = ("quantitative_outcomes", "quantitative_judges"), Settings(seed=seed)
    outcomes, agreement = (
        STEPS[name].make({"score_verdicts": None, **given}, settings) for name in names
    )
    note = str(outcomes.notes.get("note", ""))
    if outcomes.table.empty:
        raise ValueError(f"no judge can be learnt: {note}")
    return LearntJudge(outcomes.table, agreement.table, note)


class LearntRatings(NamedTuple):
    """Judges that learnt people's ratings or choices from a base judge's reasons and scores.

    Attributes
    ----------
    predictions : DataFrame
        A column per method, a row for each of the table's: ``ls`` a rating in points, ``mn`` the
        most probable one, ``pl`` the chance of being the best of its set. No label on the question
        of a row taught its prediction. NaN for a row without a score or an embedding, and of
        ``pl`` for its whole set.
    agreement : DataFrame
        A ``metric`` by ``method`` and number of labels learnt from (``n_train``), beside that of
        ``score_only`` and of the ``base`` judge.
    note : str
        Why a method's agreement is missing.
    """

    predictions: pd.DataFrame
    agreement: pd.DataFrame
    note: str


def learn_ratings(ratings: pd.DataFrame, *, seed: int = 0) -> LearntRatings:
    """Learn people's ratings, or their choice among several, from a judge's reasons and scores.

    Parameters
    ----------
    ratings : DataFrame
        A row an answer: ``question_id``, ``judge_score``, ``embedding`` (the vector of the judge's
        reason; `judgeline embed` makes it) and ``human_rating``, empty where nobody rated.
        With ``log_p_1``, ``log_p_2``, ..., the judge's log-probabilities of each rating, method
        ``mn`` stands beside ``ls``. With ``ranking_id`` and ``human_rank`` (1 for the best, empty
        for those not placed) in place of ``human_rating``: sets of equally many alternatives, for
        method ``pl``.
    seed : int
        Seed of folds and training sets.

    Returns
    -------
    LearntRatings
        Predictions, and how well they agree with people's labels.

    Raises
    ------
    ValueError
        If a column is missing or holds another kind of value, or there are too few labels.

    References
    ----------
    A. Sahoo et al. (2025), "Quantitative LLM Judges", arXiv:2506.02945.
    """
    return LearntRatings(*learnt(ratings, seed))


def pool(
    battles: Sequence[pd.DataFrame | Path | str],
    settings: Settings = _BY_DEFAULT,
    *,
    miscoverage: float | None = None,
    seed: int | None = None,
    panels: Mapping[str, pd.DataFrame] | None = None,
    least_icc: float | None = STRONG_JUDGE,
) -> pd.DataFrame:
    """Rate models by several strong judges together, on the battles that all of them scored.

    Parameters
    ----------
    battles : sequence of DataFrame, Path or str
        A table or file of each judge, as for `rank`. A battle is the same in two of them if its
        ``battle_id``, models and vote are; without ``battle_id`` if its ``question_id``, models in
        either order, and vote are.
    settings : Settings
        How to rate. Pooled ratings have one method and one criterion, skill: `method`, `methods`,
        `thresholds` and `withhold` have to be left out.
    miscoverage, seed : optional
        Settings of these names, in place of those in `settings`.
    panels : mapping of str to DataFrame, optional
        Repeated runs by name of the judge: ``battle_id``, ``replicate``, ``score_difference`` and
        ``judge_outcome``. A judge whose ICC(3,k) of them is below `least_icc` is left out; of one
        without a panel nothing is known, and it is taken.
    least_icc : float, optional
        Least ICC(3,k) of a strong judge, 0.90 as published; None takes all judges.

    Returns
    -------
    DataFrame
        The leaderboard of ``pooled``: a model per row, its rating and interval in Elo points. Its
        ``attrs`` name the ``judges`` and, with the reason, those ``left_out``.

    Raises
    ------
    ValueError
        If there are fewer than two (strong) judges, a panel is of none of them or lacks a column, a
        table cannot be read, its battles cannot be told
        apart, or a judge scored less than 80 % of the battles that would be common.
    QualityGateError
        If a judge fails the gate, or most rows of a table cannot be used.
    """
    if isinstance(battles, pd.DataFrame | Path | str) or len(battles) < 2:
        raise ValueError("pool takes a list of two tables or files at least, one of each judge")
    settings = _settled(settings, miscoverage=miscoverage, seed=seed)
    for name in ("method", "methods", "thresholds", "withhold"):
        if getattr(settings, name) != getattr(_BY_DEFAULT, name):
            raise ArgumentError(
                f"pooled ratings have one method and one criterion: leave out {name!r}", name
            )
    scored: dict[str, pd.DataFrame] = {}
    for place, one in enumerate(battles):
        read = readable(one, None, None, None, allow_quarantine=None)
        require_usable(read.scored, fit_beta_folds(as_coded(read.scored, settings.hard_outcome)))
        name = read.judge if read.judge not in scored else f"{read.judge} ({place + 1})"
        is_named = not read.scored["battle_id"].astype(str).str.fullmatch(r"row-\d+").all()
        scored[name] = read.scored if is_named else by_question(read.scored)
    weak = _weak(scored, panels or {}, least_icc)
    strong = {name: table for name, table in scored.items() if name not in weak}
    if len(strong) < 2:
        reasons = ", ".join(f"{name} has {reason}" for name, reason in weak.items())
        raise ArgumentError(
            f"pooling takes two strong judges at least, and {reasons}; least_icc=None takes all",
            "least_icc",
        )
    common = common_battles(strong)
    if few := sorted({*strong} - {*common}):
        counts = ", ".join(f"{name} {len(table):,}" for name, table in strong.items())
        raise ValueError(
            f"too few battles are the same in {', '.join(few)} as in the others (battles: {counts})"
            "; pooled judges need the same battle_id, models and votes on four in five of them"
        )
    board, said = pooled_board(common, settings.resolved(len(next(iter(common.values())))))
    if board.empty:
        raise ValueError(said["note"])
    pooled = board[list(Leaderboard._fields)].copy()
    pooled.attrs = {"judges": sorted(common), "left_out": weak}
    return pooled


def plan(
    battles: pd.DataFrame | Path | str | Sequence[pd.DataFrame | Path | str],
    settings: Settings = _BY_DEFAULT,
    *,
    judge: str | Sequence[str] | None = None,
    half_width: float | None = None,
    call_price: float | None = None,
    vote_price: float | None = None,
    n_target_votes: float | None = None,
    **reading: Any,
) -> Plan:
    """Say what a judge is worth in votes, and what narrows a model's interval.

    Parameters
    ----------
    battles : DataFrame, Path or str, or sequence of these
        As for `rank`; of several judges a table or file each.
    settings : Settings
        How to rate.
    judge : str or sequence of str, optional
        Which judges, where a file holds several.
    half_width : float, optional
        Elo points that an interval is to reach to either side: `Plan.mixes` then has the cheapest
        calls and votes for it. Without prices these are the fewest votes, then the fewest calls.
    call_price, vote_price : float, optional
        What one call of the judge, and one vote, cost; in any one currency.
    n_target_votes : float, optional
        Votes behind the human rating that an interval without votes promises to hold; the median
        of the models with votes by default, divided by their design effect.
    **reading
        ``outcomes``, ``columns``, ``allow_quarantine``, ``component``, ``missing``,
        ``same_names`` and ``votes`` as for `rank`.

    Returns
    -------
    Plan
        Of one model; `Plan.lines` says it in sentences. It foretells a model like those with
        votes, that meets opponents like theirs, and whose votes share questions as theirs do.

    Raises
    ------
    ValueError
        As of `rank`, or if fewer than two models have votes.
    QualityGateError
        As of `rank`.
    """
    several = list(battles) if isinstance(battles, list | tuple) else []
    is_records = {*map(type, several)} == {dict}
    sources = several if several and not is_records else [table_or_path(battles)]
    names = [judge] if judge is None or isinstance(judge, str) else list(judge)
    rated: dict[str, Rated] = {}
    for source in sources:
        for name in names:
            board = rank(source, settings, judge=name, **reading)
            own = board.battles.judge if len(sources) == 1 else Path(board.source).stem
            shown = own if own not in rated else f"{own} ({len(rated) + 1})"
            rated[shown] = Rated(board.ranking.heldout_ratings, board.leaderboard)
    prices = Prices(*(np.nan if one is None else one for one in (call_price, vote_price)))
    options = {"half_width": half_width, "n_target_votes": n_target_votes}
    return plan_of(rated, settings, prices=prices, **options)


def vote(
    battles: pd.DataFrame | Path | str,
    goal: str,
    out: Path | str,
    settings: Settings = _BY_DEFAULT,
    *,
    n_raters: int = 1,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    allow_quarantine: bool = False,
    missing: Any = None,
    same_names: bool = False,
    votes: Sequence[Path | str] = (),
) -> VotePage:
    """Write the page on which people vote, for the battles that a goal needs.

    The page is one file that loads nothing. Raters see question and both answers, no model's name;
    sides and battles are drawn by the settings' seed. What it saves is joined by `rank`.

    Parameters
    ----------
    battles : DataFrame, Path or str
        As for `rank`, with the texts: ``instruction``, ``completion_a``, ``completion_b``.
    goal : str
        ``"place MODEL within POINTS"``, Elo points to either side.
    out : Path or str
        The page to write.
    settings : Settings
        How to rate.
    n_raters : int
        How many people vote: each has battles of its own, and some that all see.
    judge, outcomes, columns, allow_quarantine, missing, same_names, votes
        As for `rank`; `columns` names the columns of texts too, and what has a vote is not asked.

    Returns
    -------
    VotePage
        How many votes are needed and how many battles there are; `VotePage.lines` says it. No page
        is written where no vote is needed.

    Raises
    ------
    ValueError
        As of `rank`, or if the goal is no goal, the model is unknown, or there is nothing to vote
        on.
    QualityGateError
        As of `rank`.
    """
    wanted = parse_goal(goal)
    require_raters(n_raters)
    own = [] if isinstance(battles, pd.DataFrame) else files_of(Path(battles))
    if Path(out).resolve() in [file.resolve() for file in own]:
        raise ArgumentError(f"out is {out}, which has the battles; name a page to write", "out")
    table, named = _identified(battles, columns)
    told: dict[str, Any] = {"missing": missing, "same_names": same_names, "votes": votes}
    told |= {"allow_quarantine": allow_quarantine}
    board = rank(table, settings, judge=judge, outcomes=outcomes, columns=named, **told)
    rated = Rated(board.ranking.heldout_ratings, board.leaderboard)
    return write_page(
        Path(out), table, board.battles.scored, rated, settings, wanted,
        n_raters=n_raters, seed=settings.seed,
    )  # fmt: skip


def _weak(
    judges: Collection[str], panels: Mapping[str, pd.DataFrame], least_icc: float | None
) -> dict[str, str]:
    """Return why judges are not strong, by name."""
    if unknown := [name for name in panels if name not in judges]:
        raise ArgumentError(
            f"panels has {unknown[0]!r}, and the judges are {', '.join(judges)}", "panels"
        )
    reasons = {}
    for name, panel in panels.items():
        if missing := [column for column in _PANEL if column not in panel]:
            raise ArgumentError(f"the panel of {name} has no column {missing[0]}", "panels")
        measured = {"icc_average": repeated_measurements(panel)["icc_average"]}
        if least_icc is not None and np.isnan(measured["icc_average"].value):
            note = measured["icc_average"].note
            raise ArgumentError(f"the panel of {name} has no ICC(3,k): {note}", "panels")
        reasons[name] = weakness(hold_to(measured, thresholds={"icc_average": least_icc}))
    return {name: reason for name, reason in reasons.items() if reason}


def rank_file(
    path: Path,
    out: Path,
    settings: Settings,
    *,
    judge: str | None = None,
    report: bool = True,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    allow_quarantine: bool = False,
    force: bool = False,
    counts: bool = False,
    plain: Ties | None = None,
    component: int | None = None,
    missing: Any = None,
    same_names: bool = False,
    votes: Sequence[Path | str] = (),
    command: str = "",
) -> Board:
    """Rate the models of a file as `rank` does, and write tables and report into a folder.

    `plain` says how ties count in plain ratings, which are written as well if it is given; they
    need single battles.
    All files appear, or none; where rows that were set aside may be why rating failed,
    ``quarantine.csv`` alone. A leaderboard that is there already is replaced by `force` alone.
    With `counts`, a file without the column ``n_battles`` is refused. `votes` are joined as by
    `rank`, and written with the weights of their draws. The report shows `command`, the command
    line as it was typed.
    """
    _require_writable(out, force=force)
    told: dict[str, Any] = {"missing": missing, "same_names": same_names}
    told |= {"allow_quarantine": allow_quarantine, "counted": plain is None}
    battles, cast, without = _read(path, votes, component, judge, outcomes, columns, **told)
    if counts and not battles.is_counted:
        raise ArgumentError(
            f"{path} has no column {COUNT}, which says how many battles stand in each row; rename "
            f"yours to {COUNT}, or leave out 'counts' if each row is one battle",
            "counts",
        )
    ranking = _rank_or_explain(battles, settings, out)
    since = "With these votes" if without else "Since the board that this replaces"
    changed = changes_text(_board_before(out, without, settings), ranking.leaderboard, since)
    battles = battles._replace(notes=(*battles.notes, *filter(None, [changed.removesuffix(".")])))
    source, digest = _source(path.name, component), _digest(path)
    board = Board(ranking, battles, settings, source, digest, command=command)
    tables = {
        "heldout.csv": board.heldout,
        "conformal.csv": ranking.conformal_calibration,
        "summary.csv": ranking.summary,
        LEADERBOARD: ranking.leaderboard,
        "quarantine.csv": battles.quarantine,
    }
    if cast is not None:
        tables["votes.csv"] = cast
    if plain is not None:
        options = {"miscoverage": settings.miscoverage, "l2": settings.l2}
        both = plain_ratings(battles.scored, ties=plain, **options)
        tables |= dict(zip(("plain.csv", "style.csv"), both, strict=True))
    writers = {name: _csv_writer(table) for name, table in tables.items()}
    if report:
        writers["report.html"] = board.to_html
    try:
        return replace(board, files=_write_files(out, writers, replaces=force))
    except FileExistsError as error:
        raise _is_taken(
            f"another run wrote a leaderboard into {out} since this one began"
        ) from error


def _read(
    source: pd.DataFrame | Path,
    votes: Sequence[Path | str],
    component: int | None,
    *named: Any,
    counted: bool,
    **reading: Any,
) -> WithVotes:
    """Return battles as `rank` takes them, with votes joined, those of one component alone."""
    if votes:
        found = _joined(source, votes, *named, **reading)
    else:
        found = WithVotes(readable(source, *named, counted=counted, **reading))
    if component is None:
        return found
    return WithVotes(_connected(found.battles, component), found.votes)


def _board_before(
    out: Path, without: JudgedBattles | None, settings: Settings
) -> pd.DataFrame | None:
    """Return the board to compare with: without the joined votes, else that of the folder.

    None where there is neither.
    """
    try:
        if without is not None:
            return _board_alone(without.scored, _used(without.scored, settings, without.judge))
        return pd.read_csv(out / LEADERBOARD, dtype={"model": str})
    except (ValueError, RuntimeError, QualityGateError, OSError):
        return None


def _joined(
    source: pd.DataFrame | Path | str,
    votes: Sequence[Path | str],
    judge: str | None,
    outcomes: str | None,
    columns: Mapping[str, str] | None,
    **reading: Any,
) -> WithVotes:
    """Return battles with the votes of files joined."""
    table, named = _identified(source, columns)
    read = readable(table, judge, outcomes, named, with_votes=False, **reading)
    if read.judge == OF_A_TABLE and not isinstance(source, pd.DataFrame):
        read = read._replace(judge=f"the judge of {Path(source).name}")
    return join_votes(read, read_votes(votes))


def _identified(
    source: pd.DataFrame | Path | str, columns: Mapping[str, str] | None
) -> tuple[pd.DataFrame, Mapping[str, str]]:
    """Return a table of battles with ids and texts in our names, and the other columns' names."""
    stated = dict(columns or {})
    table = with_ids(source, stated)
    return table, {name: own for name, own in stated.items() if name not in IDENTIFIED}


def _source(name: str, component: int | None) -> str:
    return name if component is None else f"{name}, component {component}"


def _connected(battles: JudgedBattles, component: int) -> JudgedBattles:
    """Return the battles of one set of models that votes tie together; 0 is the largest.

    A model without votes belongs to each set that it met.
    """
    coded = with_settled_votes(as_coded(battles.scored, "derived", every_vote=True))
    tied = np.zeros((len(coded.models), len(coded.models)), dtype=bool)
    voted = coded.human_outcome >= 0
    tied[coded.model_a[voted], coded.model_b[voted]] = True
    part, lone = connected_components(tied), ~coded.voted_models()
    sizes = [size for size in np.bincount(part).tolist() if size > 1]
    if not sizes:
        raise ValueError("votes tie no two models, so that no set can be rated: have people vote")
    if type(component) is not int or not 0 <= component < len(sizes):
        raise ArgumentError(
            f"component is {component!r}; votes split the models into {len(sizes)} sets, numbered "
            f"from 0, of {', '.join(map(str, sizes))} models",
            "component",
        )
    one, other = coded.model_a, coded.model_b
    within = part == component
    met = np.zeros_like(within)
    met[one[within[other]]] = met[other[within[one]]] = True
    member = within | (lone & met)
    kept = member[one] & member[other]
    rated = np.union1d(one[kept], other[kept])
    left_out = np.delete(coded.models, rated)
    note = f"component {component} of {len(sizes)}: {rated.size} models; left out: "
    names = ", ".join(left_out[:10].tolist()) + ", ..." * (left_out.size > 10)
    notes = (*battles.notes, note + (names or "none"))
    return battles._replace(scored=battles.scored[kept].reset_index(drop=True), notes=notes)


def _digest(source: Path) -> str:
    digest = hashlib.sha256()
    for path in files_of(source):
        with path.open("rb") as content:
            hashlib.file_digest(content, lambda: digest)
    return digest.hexdigest()


def _rank_or_explain(battles: JudgedBattles, settings: Settings, out: Path) -> Ranking:
    """Rank, or fail with the rows that were set aside, which are often the cause."""
    try:
        return rank_battles(battles.scored, settings, judge=battles.judge)
    except (ValueError, QualityGateError) as error:
        if battles.quarantine.empty:
            raise
        quarantine = _write_files(out, {"quarantine.csv": _csv_writer(battles.quarantine)})
        error.args = (
            f"{error}. Before that, {battles.n_quarantined:,} of {battles.n_rows:,} rows were "
            f"set aside (see {quarantine['quarantine.csv']}), such as: "
            f"{battles.quarantine['detail'].iloc[0]}",
        )
        raise


def rank_battles(scored: pd.DataFrame, settings: Settings, *, judge: str = "") -> Ranking:
    """Return the ranking of one judge's scored battles; raise if the judge fails the gate.

    The name of the judge says its family, where the settings do not.
    """
    used = _used(scored, settings, judge)
    with once():
        return _rank(scored, used)


def _used(scored: pd.DataFrame, settings: Settings, judge: str) -> Settings:
    """Return the settings of one ranking, with what depends on the battles and on the judge."""
    _require_recorded(scored, settings)
    named = replace(settings, judge_family=settings.judge_family or judge)
    used = named.resolved(n_battles_of(scored), counted=COUNT in scored)
    if not used.methods:
        return used
    methods = _methods(used)
    return replace(used, method=HEADLINE if HEADLINE in methods else methods[0])


def _usable(scored: pd.DataFrame, used: Settings) -> dict[str, pd.DataFrame]:
    """Return battles and slopes of a judge that can be put on the human scale, or say why not."""
    require_connected(coded(scored, used))
    given = run(["beta_folds"], {"scored_battles": scored}, used)
    require_usable(scored, as_columns(BetaFolds, given["beta_folds"]))
    return given


def _rank(scored: pd.DataFrame, used: Settings) -> Ranking:
    given, methods = _usable(scored, used), _methods(used)
    tables = run(["leaderboard"], given, used)
    rated = tables["heldout_ratings"]
    wanted = rated[rated["method"].isin([*methods, "human"])].reset_index(drop=True)
    thresholds = tables["conformal_calibration"]
    return Ranking(
        leaderboard=tables["leaderboard"],
        heldout_ratings=wanted,
        beta_folds=tables["beta_folds"],
        conformal_calibration=thresholds[thresholds["method"].isin(methods)].reset_index(drop=True),
        summary=as_table(summarise(as_columns(HeldOutRatings, wanted))),
        judge_diagnostics=tables["judge_diagnostics"],
    )


def _board_alone(scored: pd.DataFrame, used: Settings) -> pd.DataFrame:
    """Return the leaderboard of `rank_battles` without what its ratings do not rest on.

    A rating by judge and votes rests on the standard error that the settings choose. Diagnoses
    count where the gate withholds by one of them.
    """
    with once():
        given = _usable(scored, used)
        if {*used.withhold} <= {"skill"}:
            given["judge_diagnostics"] = JUDGE_DIAGNOSTICS.empty()
        if used.std_error == "analytic":
            used = replace(used, n_resamples=0)
        return run("leaderboard", given, replace(used, n_splits=1))["leaderboard"]


def _require_recorded(scored: pd.DataFrame, settings: Settings) -> None:
    if settings.hard_outcome != "recorded":
        return
    if missing := n_battles_of(scored[scored["recorded_outcome"].isna()]):
        raise ArgumentError(
            f"{missing} of {n_battles_of(scored)} battles have no outcome recorded by the judge "
            "(column judge_outcome); add it, or rank with hard_outcome=derived",
            "hard_outcome",
        )


def _methods(settings: Settings) -> list[str]:
    """Return the methods to write: those asked for, else all that cost no fit of their own."""
    if settings.methods:
        return list(dict.fromkeys(settings.methods))
    return [one for one in JUDGE_METHODS if not is_baseline(one) or one == settings.method]


def _csv_writer(table: pd.DataFrame) -> Callable[[Path], object]:
    return lambda path: path.write_text(in_csv(table), encoding="utf-8", newline="")


def _require_writable(out: Path, *, force: bool) -> None:
    if (out / LEADERBOARD).exists() and not force:
        raise _is_taken(f"{out} holds a leaderboard already")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out, prefix=".judgeline-"):
            pass
    except OSError as error:
        raise ArgumentError(
            f"cannot write into {out} ({error.strerror or error}); name another folder with 'out'",
            "out",
        ) from error


def _is_taken(reason: str) -> ArgumentError:
    remedy = "name another folder, or replace it with force=True"
    return ArgumentError(f"{reason}; {remedy}", "force")


def _write_files(
    out: Path, writers: Mapping[str, Callable[[Path], object]], *, replaces: bool = True
) -> dict[str, Path]:
    files = {name: out / name for name in writers}
    new = None if replaces else out / LEADERBOARD
    write_together({files[name]: write for name, write in writers.items()}, new=new)
    return files
