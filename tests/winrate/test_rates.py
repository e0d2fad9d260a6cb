"""Pass rates of single answers: published values, another program, a simulation, refusals."""

import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, fisher_exact
from typer.testing import CliRunner

import judgeline
from judgeline.cli import app
from judgeline.winrate import RATES, judge_or_humans, pass_rates
from judgeline.winrate.rates import reversal_p_value


def answers(theta: float, n: int, n_labels: int, rng: np.random.Generator, system: str = "ant"):
    """Verdicts of a judge that passes 90 % of what people pass and 30 % of what they fail."""
    good = rng.random(n) < theta
    verdict = np.where(good, rng.random(n) < 0.9, rng.random(n) < 0.3)
    labelled = np.arange(n) < n_labels
    return pd.DataFrame(
        {"system": system, "verdict": verdict * 1.0, "label": np.where(labelled, good, np.nan)}
    )


def row_of(table, system: str, estimator: str) -> pd.Series:
    frame = pd.DataFrame(table._asdict())
    return frame[frame["system"].eq(system) & frame["estimator"].eq(estimator)].iloc[0]


def test_the_paper_s_interval_comes_out_of_its_example() -> None:
    """p = 0.5 of 1,000 answers, specificity 0.7, sensitivity 0.9, 100 labels of either class."""
    labelled = [(1, 1)] * 90 + [(0, 1)] * 10 + [(1, 0)] * 30 + [(0, 0)] * 70
    rows = labelled + [(1, np.nan)] * 500 + [(0, np.nan)] * 500
    verdict, label = np.array(rows, dtype=float).T
    found = row_of(pass_rates(["x"] * 1200, verdict, label, miscoverage=0.05), "x", "corrected")
    assert [found["lower"], found["upper"]] == pytest.approx([0.2061, 0.4441], abs=5e-5)
    assert found["rate"] == pytest.approx((0.5 + 0.7 - 1) / 0.6)
    assert (found["sensitivity"], found["specificity"]) == (0.9, 0.7)


def test_plain_shares_have_wilsons_interval() -> None:
    table = answers(0.6, 80, 30, np.random.default_rng(1))
    found = pass_rates(*(table[name] for name in table))
    for estimator, column in (("judge", "verdict"), ("labels", "label")):
        values = table[column].dropna()
        twin = binomtest(int(values.sum()), len(values)).proportion_ci(0.9, method="wilson")
        row = row_of(found, "ant", estimator)
        assert [row["lower"], row["upper"]] == pytest.approx([twin.low, twin.high])


def test_with_labels_of_its_own_the_headline_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    held = []
    for _ in range(300):
        table = answers(0.7, 500, 100, rng)
        row = row_of(pass_rates(*(table[name] for name in table)), "ant", "prediction-powered")
        assert row["headline"]
        held.append(row["lower"] <= 0.7 <= row["upper"])
    assert 0.83 <= np.mean(held) <= 0.97, "four standard errors of 300 draws about 0.9"


def test_without_labels_of_its_own_it_is_the_judge_less_its_error_on_other_systems() -> None:
    """Twelve labelled systems, of one quality to the judge; the thirteenth has no label."""
    rng = np.random.default_rng(7)
    systems = [answers(rng.uniform(0.5, 0.8), 400, 60, rng, f"s{i:02}") for i in range(12)]
    every = pd.concat([*systems, answers(0.65, 400, 0, rng, "new")])
    table = pass_rates(*(every[name] for name in every))
    row = row_of(table, "new", "difference")
    assert row["headline"]
    known = every[every["label"].notna()]
    error = (known["label"] - known["verdict"]).mean()
    alone = every.loc[every["system"].eq("new"), "verdict"].mean()
    assert row["rate"] == pytest.approx(alone + error)
    assert row["lower"] < 0.65 < row["upper"]
    assert row["upper"] - row["lower"] < 0.5
    few = pd.concat([*systems[:3], every[every["system"].eq("new")]])
    row = row_of(pass_rates(*(few[name] for name in few)), "new", "difference")
    assert (row["lower"], row["upper"]) == (0, 1)
    assert row["note"] == (
        "3 other labelled systems calibrate the interval; 9 are needed, until then it is [0, 1]"
    )


def test_a_few_labels_of_its_own_leave_the_interval_from_other_systems_as_it_is() -> None:
    rng = np.random.default_rng(9)
    systems = [answers(rng.uniform(0.5, 0.8), 400, 60, rng, f"s{i:02}") for i in range(12)]
    every = pd.concat([*systems, answers(0.65, 400, 4, rng, "new")], ignore_index=True)
    labels = every.index[every["system"].eq("new") & every["label"].notna()]
    tables = [every.assign(label=every["label"].drop(labels[m:])) for m in range(5)]
    found = [row_of(pass_rates(*(t[name] for name in t)), "new", "difference") for t in tables]
    width = [row["upper"] - row["lower"] for row in found]
    assert width == pytest.approx([width[0]] * 5, rel=0.05), "the share of all its answers"
    assert width[0] < 0.5


def test_labels_help_more_the_better_the_judge_is() -> None:
    rng = np.random.default_rng(3)
    table = answers(0.7, 2_000, 200, rng)
    good = pass_rates(*(table[name] for name in table))
    blind = table.assign(verdict=rng.integers(0, 2, len(table)).astype(float))
    bad = pass_rates(*(blind[name] for name in blind))
    powered, alone = (row_of(good, "ant", name) for name in ("prediction-powered", "labels"))
    assert powered["upper"] - powered["lower"] < 0.95 * (alone["upper"] - alone["lower"])
    useless = row_of(bad, "ant", "prediction-powered")
    assert useless["upper"] - useless["lower"] == pytest.approx(
        alone["upper"] - alone["lower"], rel=0.1
    )


def test_without_labels_or_with_a_blind_judge_no_rate_is_shown() -> None:
    table = answers(0.7, 100, 0, np.random.default_rng(4))
    found = pd.DataFrame(pass_rates(*(table[name] for name in table))._asdict())
    assert not found["headline"].any()
    assert found["estimator"].tolist() == [*RATES]
    assert found.loc[found["estimator"].ne("judge"), "rate"].isna().all()
    wrong = answers(0.7, 100, 60, np.random.default_rng(5))
    turned = wrong.assign(verdict=1 - wrong["verdict"])
    corrected = row_of(pass_rates(*(turned[name] for name in turned)), "ant", "corrected")
    assert corrected["status"] == "chance"
    assert np.isnan(corrected["rate"])


def test_labels_nearly_all_alike_stand_for_themselves() -> None:
    label = np.r_[np.ones(296), np.zeros(4)]
    found = pass_rates(["x"] * 300, label, label)
    headline = pd.DataFrame(found._asdict()).query("headline")
    assert headline["estimator"].tolist() == ["labels"]
    assert headline["rate"].tolist() == [296 / 300]
    assert row_of(found, "x", "corrected")["status"] == "all-labelled"


def headline_of(table: pd.DataFrame, system: str = "ant") -> list[str]:
    found = pd.DataFrame(pass_rates(*(table[name] for name in table))._asdict())
    return found.loc[found["headline"] & found["system"].eq(system), "estimator"].tolist()


def test_labels_of_its_own_take_over_where_they_cannot_correct_the_judge() -> None:
    rng = np.random.default_rng(10)
    others = [answers(rng.uniform(0.5, 0.8), 400, 60, rng, f"s{i:02}") for i in range(12)]
    for n_labels, shown, alone in [
        (0, ["difference"], []),
        (4, ["difference"], []),
        (5, ["difference"], ["labels"]),
        (19, ["difference"], ["labels"]),
        (20, ["labels"], ["labels"]),
    ]:
        own = answers(1.0, 400, n_labels, rng)  # no label failed
        assert headline_of(pd.concat([*others, own])) == shown
        assert headline_of(own) == alone


def test_a_good_judge_is_not_accused_by_one_failed_label_and_the_shown_interval_holds() -> None:
    """A rate of .96 and 25 labels, of which five failed in one file of a thousand."""
    rng, n_files, held, statuses = np.random.default_rng(11), 300, [], []
    for _ in range(n_files):
        table = answers(0.96, 200, 25, rng)
        found = pd.DataFrame(pass_rates(*(table[name] for name in table))._asdict())
        [shown] = found[found["headline"]].to_dict("records")
        held.append(shown["lower"] <= 0.96 <= shown["upper"])
        statuses += found[found["estimator"].eq("corrected")].to_dict("records")
    ends = [binomtest(k, 25).proportion_ci(0.9, method="wilson") for k in range(26)]
    exact = sum(binom.pmf(k, 25, 0.96) for k, of in enumerate(ends) if of.low <= 0.96 <= of.high)
    error = math.sqrt(exact * (1 - exact) / n_files)
    assert np.mean(held) == pytest.approx(exact, abs=4 * error)
    found = pd.DataFrame(statuses)
    assert set(found["status"]) <= {"ok", "no-labels", "labels-cannot-tell", "refuted"}
    unsure = found[found["status"].eq("labels-cannot-tell")]
    assert len(unsure) > n_files / 20
    assert unsure["note"].str.startswith("labels cannot tell").all()
    assert unsure["rate"].isna().all()


@given(st.lists(st.integers(0, 30), min_size=4, max_size=4).filter(any))
def test_reversal_is_fishers_exact_test_in_rational_arithmetic(counts: list[int]) -> None:
    both, judge_only, people_only, neither = counts
    by_judge, by_people, n = both + judge_only, both + people_only, sum(counts)
    ways = [
        math.comb(by_people, k) * math.comb(n - by_people, by_judge - k) for k in range(both + 1)
    ]
    exact = Fraction(sum(ways), math.comb(n, by_judge))
    table = [[both, judge_only], [people_only, neither]]
    assert reversal_p_value(table) == pytest.approx(float(exact), rel=1e-9)
    assert reversal_p_value(table) == pytest.approx(
        fisher_exact(table, alternative="less").pvalue, rel=1e-9
    )


def test_labels_that_no_rate_explains_refute_the_correction() -> None:
    """Of 5 % passed verdicts a judge that passes 10 % of what people fail: -0.06, +- 0.04."""
    labelled = [(1, 1)] * 180 + [(0, 1)] * 20 + [(1, 0)] * 20 + [(0, 0)] * 180
    rows = labelled + [(1, np.nan)] * 50 + [(0, np.nan)] * 950
    verdict, label = np.array(rows, dtype=float).T
    found = row_of(pass_rates(["x"] * 1400, verdict, label, miscoverage=0.05), "x", "corrected")
    assert found["status"] == "refuted"
    assert found[["rate", "lower", "upper"]].isna().all()
    assert "holds no share at all" in found["note"]


def test_a_system_is_corrected_by_its_own_labels_if_they_are_enough() -> None:
    rng = np.random.default_rng(8)
    both = pd.concat([answers(0.7, 400, 100, rng), answers(0.4, 400, 100, rng, system="bee")])
    alone = both[both["system"].eq("ant")]
    found, own = (pass_rates(*(table[name] for name in table)) for table in (both, alone))
    for column in ("rate", "lower", "sensitivity"):
        expected = row_of(own, "ant", "corrected")[column]
        assert row_of(found, "ant", "corrected")[column] == expected


def test_files_and_tables_are_read_in_any_usual_words(tmp_path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("Model,Verdict,Gold\nx,pass,yes\nx,FAIL,\nx,1,no\ny,true,\n", encoding="utf-8")
    of_file = judgeline.pass_rates(path)
    given = pd.DataFrame(
        {"system": ["x", "x", "x", "y"], "v": [True, False, True, True], "g": [1, None, 0, None]}
    )
    of_table = judgeline.pass_rates(given, columns={"verdict": "v", "label": "g"})
    pd.testing.assert_frame_equal(of_file, of_table)
    assert of_file.loc[of_file["estimator"].eq("labels"), "n_labels"].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("system,verdict\nx,1\n", "label=NAME"),
        ("verdict,label\nmaybe,1\n", "'maybe' in row 0"),
        ("verdict,label\n1,1\n,0\n", "empty in 1 of 2"),
        ("system,verdict,label\n,1,1\n", "name a system"),
        ("verdict,label\n", "a header and no answers"),
        ("verdict,label,n_battles\n1,1,40\n", "counts answers in column 'n_battles'"),
        ("verdict,label,Verdict\n1,1,0\n", "'verdict' and 'Verdict', which only capitals"),
        ("judge,verdict,label\ngpt,1,1\nclaude,1,1\n", "verdicts of 2 judges"),
    ],
)
def test_what_cannot_be_read_names_place_and_remedy(tmp_path, text: str, told: str) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=told) as error:
        judgeline.pass_rates(path)
    assert str(path) in str(error.value)
    with pytest.raises(ValueError, match="grade"):
        judgeline.pass_rates(path, columns={"grade": "verdict"})


def test_the_command_prints_a_table_and_its_assumption(tmp_path) -> None:
    path = tmp_path / "answers.csv"
    answers(0.7, 300, 60, np.random.default_rng(6)).to_csv(path, index=False)
    shown = CliRunner().invoke(app, ["rates", str(path)])
    assert shown.exit_code == 0
    assert "prediction-powered: valid if the labelled answers are a random part" in shown.output
    one_failed = np.r_[np.ones(24), 0, np.full(75, np.nan)]
    pd.DataFrame({"verdict": 1, "label": one_failed}).to_csv(path.with_name("few.csv"), index=False)
    few = CliRunner().invoke(app, ["rates", str(path.with_name("few.csv"))])
    assert "labels cannot tell whether the judge is better than chance on" in few.output
    turned = pd.DataFrame({"verdict": 1 - one_failed[:25], "label": one_failed[:25]})
    turned = pd.concat([turned] * 3 + [pd.DataFrame({"verdict": [0.0]})])
    turned.to_csv(path.with_name("turned.csv"), index=False)
    told = CliRunner().invoke(app, ["rates", str(path.with_name("turned.csv"))])
    assert "by the labels the judge is no better than chance on" in told.output
    listed = CliRunner().invoke(app, ["rates", str(path), "--format", "csv"])
    assert listed.output.splitlines()[0].startswith("system,estimator,headline,rate")
    assert len(listed.output.splitlines()) == 1 + len(RATES)


# ------------------------------------------------------------------ labels to buy


def counted(name: str, cells: dict[tuple[float, float], int]) -> pd.DataFrame:
    """Answers of a system by verdict and label, so many of each kind."""
    rows = [pair for pair, n in cells.items() for _ in range(n)]
    return pd.DataFrame(rows, columns=["verdict", "label"]).assign(system=name)


NAN = math.nan
PILOT = {(1, 1): 9, (0, 1): 1, (1, 0): 3, (0, 0): 7, (1, NAN): 40, (0, NAN): 60}


def test_labels_are_divided_as_by_the_published_program() -> None:
    """Its example: 200 labels, ten of either kind at hand, p = 0.4, q0 = 0.7, q1 = 0.9."""
    table = pd.concat([counted("ant", PILOT), counted("bee", {(1, 1): 5, (0, NAN): 5})])
    found = judgeline.split_labels(table, n_labels=200, miscoverage=0.05).set_index("system")
    ant = found.loc["ant"]
    assert ant[["n_passed", "n_failed", "more_passed", "more_failed"]].tolist() == [10, 10, 54, 126]
    z = 1.959964
    p, q0, q1 = (40 + z**2 / 2) / (100 + z**2), 8 / 12, 10 / 12
    theta = (p + q0 - 1) / (q0 + q1 - 1)
    variance = p * (1 - p) / (100 + z**2) + (1 - theta) ** 2 * q0 * (1 - q0) / (136 + 2)
    variance += theta**2 * q1 * (1 - q1) / (64 + 2)
    half_width = z * math.sqrt(variance) / (q0 + q1 - 1)
    assert ant["half_width"] == pytest.approx(half_width, abs=1e-6)
    bee = found.loc["bee"]
    assert (bee["status"], bee["n_passed"]) == ("class-absent", 5)
    assert "specificity needs" in bee["note"]
    # of 200 labels 180 are new, and 100 answers have none
    assert "180 more labels are planned, and 100 answers have none" in ant["note"]
    assert "80 more answers first" in ant["note"]
    fewer = judgeline.split_labels(table, n_labels=120, miscoverage=0.05).set_index("system")
    assert fewer.loc["ant", "note"] == ""
    with pytest.raises(ValueError, match="system 'ant' has 20 labels already"):
        judgeline.split_labels(table[table["system"].eq("ant")], n_labels=19)


def test_the_half_width_now_is_that_of_the_corrected_rate() -> None:
    kinds = {(1, 1): 45, (0, 1): 5, (1, 0): 8, (0, 0): 42, (1, NAN): 60, (0, NAN): 60}
    table = counted("ant", kinds)  # an interval that neither 0 nor 1 cuts
    now = judgeline.split_labels(table, n_labels=200)["half_width_now"].iloc[0]
    rates = judgeline.pass_rates(table).set_index("estimator").loc["corrected"]
    assert now == pytest.approx((rates["upper"] - rates["lower"]) / 2)
    many = {**kinds, (1, 1): 98, (0, 1): 2, (0, 0): 98, (1, 0): 2, (1, NAN): 4000}
    plan = judgeline.split_labels(counted("ant", many), n_labels=200).iloc[0]
    q, share = 99 / 102, 200 / 4060  # smoothed; right as often on either side, so symmetric
    assert plan["pays_from"] + plan["pays_to"] == pytest.approx(1)
    worth = judge_or_humans(
        plan["pays_from"], specificity=q, sensitivity=q, labels_per_test_battle=share
    )
    assert worth == pytest.approx(1)
    none_more = judgeline.split_labels(table, n_labels=100)["half_width"].iloc[0]
    assert now == pytest.approx(none_more)


def test_the_command_divides_labels(tmp_path) -> None:
    right = {(1, 1): 4, (0, 0): 4, (1, NAN): 50, (0, NAN): 50}  # all, by luck perhaps
    table = pd.concat(
        [counted("ant", PILOT), counted("bee", {(1, 1): 5, (0, NAN): 5}), counted("cat", right)]
    )
    table.to_csv(tmp_path / "answers.csv", index=False)
    runner = CliRunner(env={"COLUMNS": "200"})
    shown = runner.invoke(app, ["rates", str(tmp_path / "answers.csv"), "--labels", "200"])
    assert shown.exit_code == 0
    assert "200 labels of each system in all" in shown.output
    assert re.search(r"ant\W+10\W+10\W+54\W+126\W", shown.output)
    assert "half-width of 'corrected'" in shown.output
    assert "Note, ant: 180 more labels are planned" in shown.output
    assert "ant: With this judge, labels alone are narrower than 'corrected' at ev" in shown.output
    assert "bee: With" not in shown.output
    assert "cat: With" not in shown.output
    few = runner.invoke(app, ["rates", str(tmp_path / "answers.csv"), "--labels", "3"])
    assert "system 'ant' has 20 labels already" in str(few.exception)
    assert "n_labels" not in str(few.exception)
    assert "Note, bee: n_lost is 0" in shown.output
