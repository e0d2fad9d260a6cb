"""`judgeline rank`, called as a function: its numbers, its files, and what it refuses."""

import csv
import io
import math
import re
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from softelo_release import write_release

import judgeline
from judgeline.api import (
    HELDOUT_COLUMNS,
    QualityGateError,
    Settings,
    UnusableJudgeError,
    rank_battles,
    rank_file,
)
from judgeline.cli import main
from judgeline.io import read_judged_battles
from judgeline.terminal import open_console, show_ranked

TABLES = ("heldout.csv", "conformal.csv", "summary.csv", "leaderboard.csv", "quarantine.csv")
QUICK = Settings(n_resamples=0)


def simulated_battles(n_models: int = 12, n_battles: int = 900, seed: int = 3) -> pd.DataFrame:
    """Votes from Bradley-Terry, scores from the same strengths with noise of their own."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(-1, 1, n_models)
    first = rng.integers(n_models, size=n_battles)
    second = (first + rng.integers(1, n_models, size=n_battles)) % n_models
    gap = strength[first] - strength[second]
    return pd.DataFrame(
        {
            "model_a": [f"model-{code:02d}" for code in first],
            "model_b": [f"model-{code:02d}" for code in second],
            "score_difference": np.rint(12 * (gap + rng.normal(size=n_battles))) / 12,
            "human_outcome": (rng.random(n_battles) < 1 / (1 + np.exp(-gap))).astype(float),
        }
    )


@pytest.fixture
def battles_csv(tmp_path: Path) -> Path:
    path = tmp_path / "battles.csv"
    simulated_battles().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def released(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The released sample, ranked with the penalty and hard label of the published program."""
    out = tmp_path_factory.mktemp("released")
    arguments = ["--hard-outcome", "recorded", "--l2", "0.005", "--n-resamples", "20"]
    assert main(["rank", str(sample), "--out", str(out), "--no-report", *arguments]) == 0
    return out


def test_released_sample_matches_the_published_program(released: Path, expected_dir: Path) -> None:
    ours = pd.read_csv(released / "heldout.csv").set_index(["model", "method"])
    published = pd.read_csv(expected_dir / "softelo_sample_heldout.csv")
    published = published.set_index(["model", "method"])
    assert len(published) == 28
    ours = ours.loc[published.index]
    for mine, theirs in (("human_rating", "human_elo"), ("judge_rating", "judge_elo")):
        assert ours[mine].to_numpy() == pytest.approx(published[theirs].to_numpy(), abs=0.005)
    assert ours["residual"].to_numpy() == pytest.approx(
        (published["judge_elo"] - published["human_elo"]).to_numpy(), abs=0.01
    )
    soft = published["beta"].notna()
    assert ours["beta"][soft].to_numpy() == pytest.approx(published["beta"][soft], abs=1e-5)
    assert ours["n_battles"].tolist() == published["n_target_rows"].tolist()


def test_files_hold_what_is_promised(battles_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    ranked = rank_file(battles_csv, out, Settings(n_resamples=20))
    assert sorted(path.name for path in out.iterdir()) == sorted([*TABLES, "report.html"])
    heldout = pd.read_csv(out / "heldout.csv")
    assert tuple(heldout.columns) == HELDOUT_COLUMNS
    assert {"hard", "soft"} <= set(heldout["method"])
    exact = ranked.heldout
    assert (exact["residual"] == exact["judge_rating"] - exact["human_rating"]).all()
    for name in exact.select_dtypes("float"):  # the file has twelve digits of each
        np.testing.assert_allclose(heldout[name], exact[name], rtol=5.001e-12, err_msg=name)
    assert len(pd.read_csv(out / "leaderboard.csv")) == 12
    assert pd.read_csv(out / "quarantine.csv").empty
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "model-11" in report
    assert len(ranked.battles.scored) == 900


def test_many_battles_are_resampled_only_where_somebody_asks(
    battles_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr("judgeline.rating_options.MOST_RESAMPLED", 899)
    resampled = {}
    for options in ("", "--n-resamples 2", "--std-error bootstrap"):
        out = tmp_path / f"out{options}"
        assert main(["rank", str(battles_csv), "--out", str(out), *options.split()]) == 0
        heldout = pd.read_csv(out / "heldout.csv")
        resampled[options] = heldout["std_error"].notna().any()
        assert heldout["std_error_analytic"].notna().all()
        n_resamples = {"": 0, "--n-resamples 2": 2}.get(options, 200)
        assert f"<dt>n_resamples</dt><dd><bdi>{n_resamples}</bdi></dd>" in (
            out / "report.html"
        ).read_text(encoding="utf-8")
        said = "no resamples are drawn unless" in " ".join(capsys.readouterr().out.split())
        assert said == (not options)
    assert list(resampled.values()) == [False, True, True]
    assert Settings().resolved(899).n_resamples == 200


def test_result_repeats_and_does_not_depend_on_the_file_name(
    battles_csv: Path, tmp_path: Path
) -> None:
    renamed = tmp_path / "renamed.csv"
    renamed.write_bytes(battles_csv.read_bytes())
    settings = Settings(n_resamples=30, seed=5)
    for source, out in ((battles_csv, tmp_path / "one"), (renamed, tmp_path / "two")):
        rank_file(source, out, settings, report=False)
    for name in TABLES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_hostile_names_are_inert_in_every_file(tmp_path: Path) -> None:
    names = [
        "=cmd|'/C calc'!A0",
        "+1",
        "-2+3",
        "@SUM(A1)",
        "\u202etxt.exe",
        "red\x1b[31m",
        "c\x9b31m",
    ]
    table = simulated_battles(n_battles=300, n_models=len(names))
    known = {f"model-{place:02d}": name for place, name in enumerate(names)}
    table = table.assign(model_a=table["model_a"].map(known), model_b=table["model_b"].map(known))
    table = table.astype(object)
    table.loc[len(table)] = ["=bad", "red\x1b[31m", "=1+1", 1]
    path = tmp_path / "=battles.csv"
    table.to_csv(path, index=False)
    found = rank_file(path, tmp_path / "out", QUICK, report=True)
    for name in ("heldout.csv", "leaderboard.csv", "quarantine.csv", "report.html"):
        text = found.files[name].read_text(encoding="utf-8")
        assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text) is None
        rows = csv.reader(text.splitlines()) if name.endswith("csv") else []
        assert not [cell for row in rows for cell in row if cell[:1] in "=+@" and cell]
    heldout = pd.read_csv(found.files["heldout.csv"])
    assert {"'=cmd|'/C calc'!A0", "'-2+3", "red\N{REPLACEMENT CHARACTER}[31m"} <= {
        *heldout["model"]
    }
    assert heldout["residual"].lt(0).any()


def _scored(table: pd.DataFrame) -> pd.DataFrame:
    """Battles as the reader hands them on, made here by hand."""
    return table.assign(
        battle_id=[str(row) for row in range(len(table))],
        judge_outcome=(np.sign(table["score_difference"]) + 1) / 2,
        recorded_outcome=math.nan,
        language=None,
        **dict.fromkeys(("difference_ab", "difference_ba", "length_a", "length_b"), math.nan),
    )


@pytest.mark.parametrize("method", ["hard", "soft", "average"])
def test_method_chooses_what_is_written_and_what_ranks(
    battles_csv: Path, tmp_path: Path, method: str
) -> None:
    settings = Settings(n_resamples=0, methods=(method,))
    rank_file(battles_csv, tmp_path / "out", settings)
    for name in ("heldout.csv", "conformal.csv", "summary.csv", "leaderboard.csv"):
        assert set(pd.read_csv(tmp_path / "out" / name)["method"]) == {method}
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_recorded_outcomes_are_those_of_the_file_and_derived_ones_are_not(tmp_path: Path) -> None:
    table = simulated_battles()
    path = tmp_path / "voters.csv"
    table.assign(judge_outcome=table["human_outcome"]).to_csv(path, index=False)
    scored = read_judged_battles(path).scored
    error = {}
    for kind in ("recorded", "derived"):
        settings = Settings(n_resamples=0, methods=("hard",), hard_outcome=kind)
        held_out = rank_battles(scored, settings).heldout_ratings
        error[kind] = held_out.query("method == 'hard'")["residual"].abs().max()
    assert error["recorded"] == pytest.approx(0, abs=1e-5)  # the judge is the voters
    assert error["derived"] > 5


def test_orders_that_contradict_each_other_are_a_tie(tmp_path: Path) -> None:
    table = simulated_battles().head(3).assign(
        score_difference=[1.0, 1.0, -1.0], difference_ab=[3.0, 1.0, math.nan],
        difference_ba=[-1.0, 1.0, math.nan],
    )  # fmt: skip
    table.to_csv(tmp_path / "orders.csv", index=False)
    read = read_judged_battles(tmp_path / "orders.csv").scored
    assert read["judge_outcome"].tolist() == [0.5, 1.0, 0.0]


def test_rows_that_repeat_are_counted_and_told(tmp_path: Path) -> None:
    table = simulated_battles().drop_duplicates()
    pd.concat([table, table]).to_csv(tmp_path / "twice.csv", index=False)
    assert read_judged_battles(tmp_path / "twice.csv").n_repeated == len(table)


def test_a_file_of_mostly_unusable_rows_is_refused(tmp_path: Path) -> None:
    table = simulated_battles()
    table.loc[table.index[: 2 * len(table) // 3], "score_difference"] = math.nan
    table.to_csv(tmp_path / "broken.csv", index=False)
    with pytest.raises(QualityGateError, match=r"67% of .* nan-score.*expected a number"):
        rank_file(tmp_path / "broken.csv", tmp_path / "out", QUICK, report=False)


@pytest.mark.parametrize("row", ["model-01,model-02,0,5,1.0", "model-01,model-02,0.5"])
def test_a_row_of_another_length_is_refused_with_its_number(
    row: str, battles_csv: Path, tmp_path: Path
) -> None:
    lines = battles_csv.read_text().splitlines()
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("\n".join([*lines[:7], row, *lines[7:]]))
    n_fields = row.count(",") + 1
    with pytest.raises(ValueError, match=rf"row 6: {n_fields} fields where the header has 4"):
        read_judged_battles(ragged)


def test_a_file_of_two_judges_is_read_by_one_that_it_has(battles_csv: Path, tmp_path: Path) -> None:
    table = pd.read_csv(battles_csv)
    both = pd.concat([table.assign(judge="one"), table.assign(judge="two")])
    both.to_csv(tmp_path / "both.csv", index=False)
    chosen = read_judged_battles(tmp_path / "both.csv", judge="two")
    assert (chosen.judge, len(chosen.scored)) == ("two", len(table))
    with pytest.raises(ValueError, match="no verdict of judge 'three'"):
        read_judged_battles(tmp_path / "both.csv", judge="three")


def test_a_failure_names_the_rows_that_were_set_aside(tmp_path: Path) -> None:
    table = simulated_battles().assign(human_outcome=None)  # all that is left has no vote
    words = table["score_difference"].astype(object).where(table.index % 3 > 0, "high")
    table.assign(score_difference=words).to_csv(tmp_path / "words.csv", index=False)
    with pytest.raises(QualityGateError, match=r"no-decisive-votes.*300 of 900 rows.*'high'"):
        rank_file(
            tmp_path / "words.csv", tmp_path / "out", QUICK, report=False, allow_quarantine=True
        )
    assert len(pd.read_csv(tmp_path / "out" / "quarantine.csv")) == 300


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: {"score_difference": -t["score_difference"]}, r"contradicts-humans.*A minus B"),
        (lambda t: {"score_difference": 1.0}, "constant-scores.* is 1, so that the"),
        (lambda t: {"score_difference": -1.0}, "constant-scores.* is -1, so that the"),
        (lambda t: {"score_difference": 0.0}, "constant-scores.* is 0, so that the"),
        (lambda t: {"score_difference": 2 * t["human_outcome"] - 1}, "separable"),
        (lambda t: {"human_outcome": 0.5}, "no-decisive-votes"),
        (lambda t: {"human_outcome": 0.5, "score_difference": 0.0}, "no-decisive-votes"),
    ],
)
def test_a_judge_without_a_slope_is_refused(change, told: str) -> None:
    table = _scored(simulated_battles())
    with pytest.raises(UnusableJudgeError, match=told):
        rank_battles(table.assign(**change(table)), QUICK)


def test_a_judge_that_may_reverse_people_is_not_accused_and_votes_that_tell_are_counted() -> None:
    """Scores of 2 points; 441 of 900 votes agree: log(441/459) / 2 = -0.0200, error 0.0333."""
    table = _scored(simulated_battles())
    agrees = table.index < 441
    side = np.where(table.index % 2 > 0, 2.0, -2.0)
    votes = np.where(agrees, side > 0, side < 0).astype(float)
    unclear = table.assign(score_difference=side, human_outcome=votes)
    with pytest.raises(UnusableJudgeError, match="votes-cannot-tell, 900 decisive") as refusal:
        rank_battles(unclear, QUICK)
    assert "votes cannot tell: slope -0.020 +- 0.033. About 10,002 decisive votes" in str(
        refusal.value
    )
    assert "must not rate" not in str(refusal.value)


@pytest.mark.parametrize("n_models", [4, 6])  # 2 and 3 calibrate a split
def test_too_few_models_say_why_a_threshold_is_infinite(tmp_path: Path, n_models: int) -> None:
    path = tmp_path / "few.csv"
    simulated_battles(n_models=n_models).to_csv(path, index=False)
    ranked = rank_file(path, tmp_path / "out", QUICK, report=False)
    calibration = pd.read_csv(tmp_path / "out" / "conformal.csv")
    assert calibration["n_calibration"].eq(n_models // 2).all()
    assert np.isinf(calibration[["threshold", "split_threshold"]]).all(axis=None)
    assert calibration["note"].str.contains(f"there are {n_models // 2} on each random split").all()
    assert calibration["note"].str.contains("at least 9 models").all()
    board = ranked.ranking.leaderboard
    assert np.isinf(board["judge_upper"]).all()
    # votes need no other models: a normal interval of each model's own
    assert board["evidence"].tolist() == [f"{n} votes" for n in board["n_votes"]]
    assert board["rating"].tolist() == board["human_rating"].tolist()
    reach = NormalDist().inv_cdf(0.95) * board["human_std_error"]
    assert (board["upper"] - board["rating"]).tolist() == pytest.approx(reach.tolist())
    assert board["rating"].is_monotonic_decreasing


def test_fewer_promises_are_offered_where_they_are_finite(tmp_path: Path, capsys) -> None:
    path = tmp_path / "few.csv"
    simulated_battles(n_models=6).to_csv(path, index=False)
    asked = ["rank", str(path), "--out", str(tmp_path / "out"), "--no-report"]
    assert main(asked) == 0
    offered = re.search(r"Finite intervals with these votes: (.*)", capsys.readouterr().out)
    assert offered
    assert offered[1] == "--miscoverage 0.15 --force"  # six residuals and the new one: 1 in 7
    assert main([*asked, *offered[1].split()]) == 0
    assert np.isfinite(pd.read_csv(tmp_path / "out" / "leaderboard.csv")["judge_upper"]).all()
    assert "Finite intervals" not in capsys.readouterr().out


@pytest.mark.parametrize("force", [False, True])
def test_of_two_that_rank_into_one_folder_at_once_the_later_is_refused(
    force: bool, battles_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rival rates other battles into the folder while this one is at work."""
    other, out = tmp_path / "other.csv", tmp_path / "out"
    simulated_battles(n_models=14, seed=5).to_csv(other, index=False)
    begun: list[int] = []

    def beside(*arguments, **options):
        begun.append(1)
        if len(begun) == 1:
            rank_file(other, out, QUICK, report=False)
        return rank_battles(*arguments, **options)

    monkeypatch.setattr("judgeline.api.rank_battles", beside)
    if force:
        rank_file(battles_csv, out, QUICK, report=False, force=True)
    else:
        with pytest.raises(ValueError, match=r"another run wrote a leaderboard into .* since"):
            rank_file(battles_csv, out, QUICK, report=False)
    n_models = 12 if force else 14
    assert len(pd.read_csv(out / "leaderboard.csv")) == n_models
    assert pd.read_csv(out / "heldout.csv")["model"].nunique() == n_models
    assert {path.name for path in out.iterdir()} == {*TABLES}


def test_decimal_commas_in_a_table_are_named() -> None:
    table = simulated_battles(n_battles=300)
    table["score_difference"] = table["score_difference"].astype(str).str.replace(".", ",")
    with pytest.raises(ValueError, match=r"300 nan-score.*by pandas with decimal=','"):
        judgeline.rank(table, QUICK)


def test_failure_leaves_earlier_files_alone(
    battles_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    rank_file(battles_csv, out, QUICK, report=False)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("judgeline.api.write_report", fail)
    other = Settings(n_resamples=0, l2=1.0)
    with pytest.raises(OSError, match="no space"):
        rank_file(battles_csv, out, other, force=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    with pytest.raises(ValueError, match=r"holds a leaderboard already.*force=True"):
        rank_file(battles_csv, out, other, report=False)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    rank_file(battles_csv, out, other, report=False, force=True)
    assert (out / "leaderboard.csv").read_bytes() != before["leaderboard.csv"]


def test_faulty_rows_are_set_aside_with_reasons(tmp_path: Path) -> None:
    rows = [
        ["model_a", "model_b", "score_difference", "human_outcome", "battle_id"],
        ["nan", "None", "1.5", "1", "kept-1"],  # odd names are names
        ["a", "b", "-1", "", "kept-2"],  # nobody voted
        ["a", "a", "1", "1", "self"],
        ["", "b", "1", "1", "nameless"],
        ["a", "b", "nan", "1", "scoreless"],
        ["a", "b", "inf", "1", "endless"],
        ["a", "b", "1", "2", "off-scale"],
        ["a", "b", "1", "1", "kept-1"],
        ["a", "b", "high", "1", "a word"],
        ["a", "b", "1", "A>B", "a label"],
    ]
    path = tmp_path / "faults.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    read = read_judged_battles(path)
    assert read.scored["battle_id"].tolist() == ["kept-1", "kept-2"]
    assert read.scored["model_a"].tolist() == ["nan", "a"]
    assert math.isnan(read.scored["human_outcome"][1])
    assert dict(zip(read.quarantine["row"], read.quarantine["reason"], strict=True)) == {
        2: "self-battle",
        3: "missing-model",
        4: "nan-score",
        5: "nan-score",
        6: "unknown-outcome",
        7: "unclear-battle",
        8: "nan-score",
        9: "unknown-outcome",
    }
    assert read.quarantine["detail"].tolist()[4:] == [
        "human_outcome is '2', expected 1, 0.5, 0 or empty",
        "battle 'kept-1' came before, with the models 'nan' and 'None'",
        "score_difference is 'high', expected a number",
        "human_outcome is 'A>B', expected 1, 0.5, 0 or empty",
    ]


def test_a_table_gives_the_board_of_its_file(battles_csv: Path, tmp_path: Path) -> None:
    table = pd.read_csv(battles_csv).astype({"model_a": "category"})
    board, of_file = judgeline.rank(table, QUICK), judgeline.rank(str(battles_csv), QUICK)
    pd.testing.assert_frame_equal(board.leaderboard, of_file.leaderboard)
    pd.testing.assert_frame_equal(board.heldout, of_file.heldout)
    assert tuple(board.heldout) == HELDOUT_COLUMNS
    assert board.summary["method"].tolist() == board.coverage["method"].tolist()
    assert judgeline.__version__ == version("judgeline")
    board.to_html(tmp_path / "report.html")
    assert "Ratings from a table" in (tmp_path / "report.html").read_text("utf-8")
    with pytest.raises(ValueError, match="is 'modela' meant as 'model_a'"):
        judgeline.rank(table.rename(columns={"model_a": "modela"}), QUICK)
    columns = "model_a model_b scores_a scores_b human_pref judge_pref"
    annotations = pd.DataFrame(columns=columns.split())
    with pytest.raises(ValueError, match="read from their file"):
        judgeline.rank(annotations)


def test_settings_of_every_door_are_arguments_of_rank(battles_csv: Path) -> None:
    wide = judgeline.rank(battles_csv, replace(QUICK, miscoverage=0.3, seed=3, method="soft"))
    own = judgeline.rank(battles_csv, QUICK, miscoverage=0.3, seed=3, method="soft")
    assert own.settings == wide.settings
    pd.testing.assert_frame_equal(own.leaderboard, wide.leaderboard)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: judgeline.rank(None), "battles is of type NoneType; expected a path, a Data"),
        (lambda: judgeline.doctor(5), "battles is of type int; expected a path"),
        (lambda: judgeline.win_rates([1]), "battles is of type list; expected a path"),
        (lambda: judgeline.pass_rates(5), "answers is of type int; expected a path"),
        (lambda: judgeline.rank("x.csv", {"seed": 1}), "settings is of type dict; expected judgel"),
        (lambda: judgeline.Settings(method=3), "method is 3; expected a name such as 'soft'"),
    ],
)
def test_a_wrong_type_is_one_sentence(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        call()


def test_a_plot_is_saved_and_is_one_line_at_a_prompt(tmp_path: Path, monkeypatch) -> None:
    drawn = judgeline.rank(simulated_battles(n_battles=300), QUICK).plot()
    assert "\n" not in repr(drawn)
    assert "<svg" not in repr(drawn)
    drawn.save(tmp_path / "board.svg")
    assert (tmp_path / "board.svg").read_text("utf-8") == str(drawn)
    with pytest.raises(ValueError, match=r"ends neither in .svg nor in .png"):
        drawn.save(tmp_path / "board.pdf")
    sent: dict[str, Any] = {}
    monkeypatch.setitem(sys.modules, "cairosvg", SimpleNamespace(svg2png=sent.update))
    drawn.save(tmp_path / "board.png")
    assert sent["write_to"] == str(tmp_path / "board.png")
    assert b"var(" not in sent["bytestring"]  # which cairo does not know
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(ValueError, match=r"needs cairosvg .*save it as .*board.svg"):
        drawn.save(tmp_path / "board.png")


def test_the_package_shows_its_own_names_alone() -> None:
    assert [name for name in dir(judgeline) if name[0] == "_"] == ["__version__"]
    assert {"Any", "import_module"}.isdisjoint(dir(judgeline))
    assert all(getattr(judgeline, name) for name in dir(judgeline))


def test_models_without_votes_are_named_first_wherever_a_board_is_told(tmp_path: Path) -> None:
    table = simulated_battles(n_battles=900)
    new = table["model_a"].eq("model-02") | table["model_b"].eq("model-02")
    board = judgeline.rank(table.assign(human_outcome=table["human_outcome"].mask(new)), QUICK)
    row = board.leaderboard.set_index("model").loc["model-02"]
    ends = f"{row['lower']:.0f} to {row['upper']:.0f}"
    if math.isinf(row["upper"]):
        ends = "unbounded"
    told = f"Not voted on: model-02 {row['rating']:.0f} ({ends})."
    out = io.StringIO()
    show_ranked(open_console(file=out), board)
    sentences = out.getvalue()[out.getvalue().index("The judge alone") :].splitlines()
    assert sentences[1] == told
    assert told in repr(board)
    board.to_html(tmp_path / "report.html")
    assert told in (tmp_path / "report.html").read_text("utf-8")


def test_a_board_shows_in_a_notebook_with_names_as_text() -> None:
    table = simulated_battles(n_battles=300).replace({"model-01": "<b>bold</b>"})
    board = judgeline.rank(table, QUICK)
    drawn = ElementTree.fromstring(board.plot()._repr_html_())  # noqa: S314  our own
    assert "<b>bold</b>" in [element.text for element in drawn.iter()]
    assert set(re.findall(r"var\((--fig-\w+)\)", board.plot().svg)) <= set(
        re.findall(r"(--fig-\w+): #", drawn.attrib["style"])
    )
    shown = board._repr_html_()
    assert "&lt;b&gt;bold&lt;/b&gt;" in shown
    assert shown.count("<tr") == 13


def test_a_prompt_shows_the_first_models_with_their_intervals() -> None:
    """A misspelt name that won its only battle against the best tops the board, without bounds."""
    table = simulated_battles()
    best = table["model_a"].eq("model-11")
    row = int((best & table["score_difference"].gt(0) & table["human_outcome"].eq(1)).argmax())
    table.loc[row, "model_a"] = "modle-11"
    board = judgeline.rank(table, QUICK)
    first, second = (row for _, row in board.leaderboard.head(2).iterrows())
    assert first["model"] == "modle-11"
    assert repr(board).startswith(
        f"<Board of a table: modle-11 {first['rating']:.0f} [-inf, inf], {second['model']} "
        f"{second['rating']:.0f} [{second['lower']:.0f}, {second['upper']:.0f}], "
    )
    assert repr(board).endswith(", ... (13 models)>")


def test_win_rates_of_a_table_are_those_of_the_estimator() -> None:
    table = simulated_battles()
    rates = judgeline.win_rates(table).query("headline").set_index("model")
    share = 0.5 * (np.sign(table["score_difference"]) + 1)
    for model in ("model-00", "model-07"):
        own = [*share[table["model_a"].eq(model)], *1 - share[table["model_b"].eq(model)]]
        assert rates["naive_win_rate"][model] == pytest.approx(np.mean(own))
    assert judgeline.win_rates(table).groupby("model")["headline"].sum().eq(1).all()
    with pytest.raises(ValueError, match="nobody voted"):
        judgeline.win_rates(table.assign(human_outcome=None))


NAMED = {1.0: "model_a", 0.0: "model_b", 0.5: "both_bad"}


def test_votes_may_name_the_winner() -> None:
    table = simulated_battles()
    table.loc[::10, "human_outcome"] = 0.5
    table.loc[::7, "human_outcome"] = None
    named = table.assign(winner=table["human_outcome"].map(NAMED)).drop(columns="human_outcome")
    board, of_names = judgeline.rank(table, QUICK), judgeline.rank(named, QUICK)
    pd.testing.assert_frame_equal(of_names.leaderboard, board.leaderboard)
    named.loc[3, "winner"] = "nobody"
    (detail,) = judgeline.rank(named, QUICK).battles.quarantine["detail"]
    assert detail.startswith("winner is 'nobody', expected model_a, model_b, tie")
    coded = table.rename(columns={"human_outcome": "winner"}).replace({"winner": {0.0: -1.0}})
    coded["winner"] = coded["winner"].replace(0.5, 0.0)
    with pytest.raises(ValueError, match=r"column winner holds.*outcomes=1/-1/0"):
        judgeline.rank(coded, QUICK)
    again = judgeline.rank(coded, QUICK, outcomes="1/-1/0")
    pd.testing.assert_frame_equal(again.leaderboard, board.leaderboard)


@pytest.mark.parametrize(
    ("change", "options", "in_python", "in_terminal"),
    [
        (
            {"human_outcome": [1, -1, -1] * 300},
            {},
            "with outcomes=1/-1 (",
            "with --outcomes 1/-1 (",
        ),
        ({"judge": ["one", "two"] * 450}, {}, "one with 'judge': one", "one with --judge: one"),
        (
            {"score_difference": [math.nan] * 90 + [1.0] * 810},
            {},
            "left with allow_quarantine=True",
            "left with --allow-quarantine",
        ),
        (
            {"model_a": [None] * 90 + ["m"] * 810},
            {},
            "left with allow_quarantine=True",
            "left with --allow-quarantine",
        ),
        (
            {},
            {"hard_outcome": "recorded"},
            "rank with hard_outcome=derived",
            "rank with --hard-outcome derived",
        ),
    ],
)
def test_a_remedy_names_the_argument_in_python_and_the_option_in_a_terminal(
    tmp_path: Path, capsys, change: dict, options: dict, in_python: str, in_terminal: str
) -> None:
    table = simulated_battles().assign(**change)
    with pytest.raises(ValueError, match=re.escape(in_python)) as refused:
        judgeline.rank(table, Settings(n_resamples=0, **options))
    assert "--" not in str(refused.value)
    table.to_csv(tmp_path / "x.csv", index=False)
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    out = ["--out", str(tmp_path / "out")]
    assert main(["rank", str(tmp_path / "x.csv"), *out, *given]) == 1
    assert in_terminal in " ".join(capsys.readouterr().err.split())


def test_each_set_of_connected_models_has_a_board_of_its_own(tmp_path: Path, capsys) -> None:
    large, small = simulated_battles(), simulated_battles(n_models=10, n_battles=400, seed=5)
    apart = small.replace(r"^model", "other", regex=True)
    met = {"model_a": "newcomer", "model_b": ["model-03", "other-03"] * 10}
    unvoted = pd.DataFrame(met).assign(score_difference=[2.0, -2.0] * 10, human_outcome=math.nan)
    both = pd.concat([large, apart, unvoted], ignore_index=True)
    for component, own in ((0, large), (1, apart)):
        alone = pd.concat([own, unvoted[unvoted["model_b"].isin(own["model_b"])]])
        board = judgeline.rank(both, QUICK, component=component)
        expected = judgeline.rank(alone, QUICK).leaderboard
        pd.testing.assert_frame_equal(board.leaderboard, expected)
        assert "newcomer" in set(board.leaderboard["model"])
    with pytest.raises(ValueError, match="component is 2; votes split the models into 2 sets"):
        judgeline.rank(both, QUICK, component=2)
    with pytest.raises(ValueError, match="component is True"):
        judgeline.rank(both, QUICK, component=True)
    with pytest.raises(ValueError, match="votes tie no two models"):
        judgeline.rank(both.assign(human_outcome=math.nan), QUICK, component=0)
    both.to_csv(tmp_path / "two.csv", index=False)
    call = ["rank", str(tmp_path / "two.csv"), "--out", str(tmp_path / "out"), "--no-report"]
    assert main(call) == 1
    assert "rank one connected set (component=0, --component 0)" in capsys.readouterr().err
    assert main([*call, "--component", "1"]) == 0
    assert "component 1 of 2: 11 models; left out: model-00" in capsys.readouterr().out
    new = {"model_a": "newcomer", "model_b": "latest", "score_difference": 1.0}
    apart_new = pd.concat(
        [large, unvoted.head(1), pd.DataFrame([new, new | {"model_a": "model-01"}])]
    )
    whole = judgeline.rank(apart_new, QUICK).leaderboard
    pd.testing.assert_frame_equal(judgeline.rank(apart_new, QUICK, component=0).leaderboard, whole)
    twice = (tmp_path / "two.csv").read_text(encoding="utf-8").replace("model_b", "model_a", 1)
    (tmp_path / "twice.csv").write_text(twice, encoding="utf-8")
    assert main(["rank", str(tmp_path / "twice.csv"), *call[2:], "--force"]) == 1
    assert "two columns share a name" in capsys.readouterr().err
    for command in (call[:2], ["paper", "soft-elo"]):
        assert main([*command, "--out", " "]) == 1
        assert "'--out' is empty" in capsys.readouterr().err


def test_lengths_of_released_annotations_control_style(tmp_path: Path) -> None:
    (path,) = write_release(tmp_path, n_battles=600, judges=["Qwen3-32B"], corpora=["lmarena-100k"])
    published = pd.read_csv(path)
    scored = read_judged_battles(path).scored
    assert scored["length_a"].tolist() == published["len_a"].tolist()
    assert scored["length_b"].tolist() == published["len_b"].tolist()


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"intervals": "jack"}, {}, "intervals is 'jack'; expected 'calibrated' or 'published'"),
        ({"hard_outcome": "foo"}, {}, "hard_outcome is 'foo'; expected 'derived' or 'recorded'"),
        ({"seed": 1.5}, {}, "seed is 1.5; expected a whole number"),
        ({"seed": True}, {}, "seed is True; expected a whole number"),
        ({"families": {"x": 3}}, {}, "families has 'x': 3; expected how names of models begin"),
        ({}, {"columns": ["label"]}, "columns is ['label']; expected such as"),
        ({}, {"outcomes": [1, 0]}, "outcomes is [1, 0]; expected such as"),
    ],
)
def test_settings_of_other_kinds_are_refused(settings: dict, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        judgeline.rank(simulated_battles(), Settings(**settings), **options)


@pytest.mark.parametrize(("in_checkout", "told"), [(True, "'.[app]'"), (False, "judgeline rank")])
def test_a_package_that_is_missing_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys, in_checkout: bool, told: str
) -> None:
    """A wheel has no lineage: its commands say so, and need no package of it."""

    def broken(_: object) -> None:
        raise ImportError("No module named 'dagster'")

    monkeypatch.setattr("judgeline.cli.is_checkout", lambda: in_checkout)
    monkeypatch.setattr("importlib.metadata.EntryPoint.load", broken)
    assert main(["leaderboard", "--corpus", "arena"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert told in said
    assert ("with a checkout" in said) is not in_checkout


def test_published_intervals_are_those_of_the_paper(released: Path, sample: Path) -> None:
    """Soft Elo of the released sample, 20 resamples: 5.40 standard errors, 150 Elo wide."""
    conformal = pd.read_csv(released / "conformal.csv").set_index("method").loc["soft"]
    assert conformal["published_threshold"] == pytest.approx(5.40, abs=0.005)
    assert conformal["published_width"] == pytest.approx(150, abs=1)
    settings = {"hard_outcome": "recorded", "l2": 0.005, "n_resamples": 20, "methods": ("soft",)}
    board = judgeline.rank(sample, Settings(**settings, intervals="published")).leaderboard
    width = board["judge_upper"] - board["judge_lower"]
    expected = 2 * conformal["published_threshold"] * board["judge_std_error"]
    assert width.tolist() == pytest.approx(expected.tolist())
    for arguments in ({"n_resamples": 0}, {"n_resamples": 0, "std_error": "bootstrap"}):
        with pytest.raises(ValueError, match="leaves no bootstrap standard error"):
            Settings(**arguments, **({} if len(arguments) > 1 else {"intervals": "published"}))


# A judge without skill


def with_noise(seed: int, share: float = 0.0) -> pd.DataFrame:
    """Battles whose scores are noise, but for a share of those of a judge that knows something."""
    table, rng = simulated_battles(), np.random.default_rng(seed)
    scores = share * table["score_difference"] + rng.normal(size=len(table))
    return table.assign(score_difference=np.rint(12 * scores) / 12)


@pytest.mark.parametrize("seed", [2, 13])  # most other noise has no slope and is refused
def test_a_judge_of_noise_is_withheld_and_votes_rank(seed: int, tmp_path: Path, capsys) -> None:
    table, out = with_noise(seed), tmp_path / "out"
    unvoted = table.head(40).assign(model_a="newcomer", human_outcome=math.nan)
    pd.concat([table, unvoted]).to_csv(tmp_path / "noise.csv", index=False)
    command = ["rank", str(tmp_path / "noise.csv"), "--out", str(out), "--n-resamples", "0"]
    assert main(command) == 2
    told = capsys.readouterr()
    (skill,) = re.findall(r"Judge withheld: (skill -0\.\d+ < 0\.00)\n", told.out)
    assert f"{skill}; the board shows people's votes alone" in " ".join(told.err.split())
    board = pd.read_csv(out / "leaderboard.csv")
    voted = board[board["model"].ne("newcomer")]
    assert voted["rating"].tolist() == voted["human_rating"].tolist()
    assert voted["rating"].is_monotonic_decreasing
    assert voted["evidence"].tolist() == [f"{n} votes" for n in voted["n_votes"]]
    assert np.isfinite(voted["upper"]).all()
    # no number of this judge, and of whom nobody voted on no number at all
    assert board.filter(regex="judge_|hard_|soft_|beta").isna().all(axis=None)
    (new,) = board[board["model"].eq("newcomer")].to_dict("records")
    assert math.isnan(new["rating"])
    assert board["flags"].str.startswith(f"withheld: {skill}").all()
    page = (out / "report.html").read_text("utf-8")
    assert skill.replace("<", "&lt;") in page
    assert "Skill " not in page
    withheld = judgeline.rank(table, QUICK)
    assert withheld.withheld == withheld.leaderboard["flags"].iloc[0].removeprefix("withheld: ")


def test_a_judge_that_may_add_nothing_ranks_with_a_warning(tmp_path: Path, capsys) -> None:
    told = {}
    for share in (0.15, 1.0):
        with_noise(0, share).to_csv(tmp_path / "battles.csv", index=False)
        command = ["rank", str(tmp_path / "battles.csv"), "--out", str(tmp_path / str(share))]
        assert main([*command, "--no-report", "--n-resamples", "0"]) == 0
        told[share] = " ".join(capsys.readouterr().out.split())
        assert "Judge withheld" not in told[share]
    warning = "The interval reaches 0: this judge may add nothing."
    assert re.search(r"Note: Skill 0\.\d+ \(−0\.\d+ to 0\.\d+\): ", told[0.15])
    assert [warning in text for text in told.values()] == [True, False]
    assert judgeline.rank(with_noise(0, 0.15), QUICK).withheld == ""


# A newcomer beyond all that people have rated


@pytest.mark.parametrize(
    ("gap", "words"),
    [(0.0, None), (4.0, "above all 12 models"), (-4.0, "below all 12 models")],
)
def test_a_newcomer_beyond_all_voted_models_is_told(
    gap: float, words: str | None, tmp_path: Path, capsys
) -> None:
    """Its scores lie `gap` above those of the middle of twelve models between -1 and 1."""
    table, rng = simulated_battles(n_battles=2000), np.random.default_rng(1)
    opponents = rng.integers(12, size=120)
    scores = gap - np.linspace(-1, 1, 12)[opponents] + rng.normal(size=120)
    new = pd.DataFrame(
        {
            "model_a": "newcomer",
            "model_b": [f"model-{k:02d}" for k in opponents],
            "score_difference": np.rint(12 * scores) / 12,
            "human_outcome": math.nan,
        }
    )
    pd.concat([table, new]).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out"
    command = ["rank", str(tmp_path / "new.csv"), "--out", str(out), "--n-resamples", "0"]
    assert main(command) == 0
    printed = " ".join(capsys.readouterr().out.split())
    page = (out / "report.html").read_text("utf-8")
    board = pd.read_csv(out / "leaderboard.csv").set_index("model")
    people, rating = board["human_rating"], board.loc["newcomer", "rating"]
    is_beyond = bool(rating > people.max() or rating < people.min())
    assert is_beyond is (words is not None)
    assert board.loc["newcomer", "evidence"] == "judge"
    flagged = board["flags"].fillna("").str.contains("beyond-anchors")
    assert flagged[flagged].index.tolist() == ["newcomer"] * is_beyond
    for text in (printed, page):
        assert (f"newcomer stands {words} that people have rated" in text) is is_beyond
        assert ("have people vote on its battles first" in text) is is_beyond


@pytest.mark.parametrize(("miscoverage", "by"), [(0.16, "{} votes"), (0.17, "judge and {} votes")])
def test_few_models_are_told_which_level_the_evidence_of_a_rating_depends_on(
    tmp_path: Path, capsys, miscoverage: float, by: str
) -> None:
    battles = simulated_battles(n_models=6)
    battles.to_csv(path := tmp_path / "few.csv", index=False)
    asked = ["rank", str(path), "--out", str(tmp_path / "out"), "--no-report"]
    assert main([*asked, "--miscoverage", str(miscoverage)]) == 0
    said = capsys.readouterr().out
    board = pd.read_csv(tmp_path / "out" / "leaderboard.csv")
    assert board["evidence"].tolist() == [by.format(n) for n in board["n_votes"]]
    # five residuals of others and its own: 1 in 6
    sentence = next(line for line in said.splitlines() if line.startswith("The level decides"))
    assert "below miscoverage 0.17 its votes alone" in sentence
    here = "judge and votes" if by.startswith("judge") else "the votes alone"
    assert f"here it is {miscoverage:g}: {here}." in sentence
    missing = " ".join(judgeline.doctor(battles).missing)
    assert sentence.replace(f"{miscoverage:g}: {here}", "0.1: the votes alone") in missing
