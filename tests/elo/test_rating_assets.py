"""Checks of slopes and ratings, and every scoring method of a judge in one table."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml

from assets.comparison.report import without_figures
from assets.elo import ratings
from assets.partitions import corpus_judge_key
from judgeline.elo import HeldOutRatings
from judgeline.io import as_table
from judgeline.steps import methods
from judgeline.steps.methods import FIGURES, KINDS, LEAST_SHARE, count_spending, gather_methods
from judgeline.steps.step import as_columns
from judgeline.tables.elo import BETA_FOLDS, MEANINGS, SCORING_METHODS
from resources.config.catalog import Catalog
from resources.tables.expectations import result_of

MODELS = ("ant", "bee", "cat", "dog")

# ------------------------------------------------------------------ slopes and ratings


@pytest.mark.parametrize(
    ("check", "changes", "told"),
    [
        ("beta_is_usable", {"status": "separable"}, "bee (status=separable)"),
        ("beta_is_usable", {"beta": 0.0}, "beta is positive and finite"),
        ("beta_is_usable", {"beta": np.inf}, "beta is positive and finite"),
        ("beta_is_well_determined", {"std_error": 0.6}, "bee"),
    ],
)
def test_a_slope_that_is_no_slope_is_named(check, changes, told):
    folds = pd.DataFrame({"held_out_model": ["ant", "bee"], "beta": 0.8, "std_error": 0.1})
    folds = folds.assign(n_battles=40, status="ok")
    assert result_of(BETA_FOLDS, check, folds).passed
    folds.loc[1, list(changes)] = list(changes.values())
    result = result_of(BETA_FOLDS, check, folds)
    assert not result.passed
    assert told in result.description


@pytest.fixture(scope="module")
def heldout() -> pd.DataFrame:
    rows = [
        (model, method, 1500.0 + 50 * i + shift, 1500.0 + 50 * i, shift, 20.0, 21.0, "")
        for i, model in enumerate(MODELS)
        for method, shift in (("human", 0.0), ("hard", 30.0), ("soft", -10.0), ("auto", 8.0))
    ]
    columns = "model method rating human_rating residual std_error std_error_analytic flags"
    return pd.DataFrame(rows, columns=columns.split())


def at(table, model, method, **values):
    rows = table["model"].eq(model) & table["method"].eq(method)
    return table.assign(**{name: table[name].mask(rows, value) for name, value in values.items()})


PLACED, AGREE, NEAR = (
    ratings.every_model_is_placed,
    ratings.standard_errors_agree,
    ratings.headline_is_near_people,
)


@pytest.mark.parametrize(
    ("check", "change", "told"),
    [
        (PLACED, lambda t: t, None),
        (PLACED, lambda t: t[~(t["model"].eq("dog") & t["method"].eq("soft"))], "dog"),
        (PLACED, lambda t: pd.concat([t, t[t["model"].eq("dog")]]), "dog"),
        (PLACED, lambda t: at(t, "dog", "soft", rating=np.nan), "dog"),
        (PLACED, lambda t: at(t, "dog", "hard", rating=-np.inf), "dog"),
        (PLACED, lambda t: t[t["model"].ne("dog")], "dog"),
        (PLACED, lambda t: at(t, "dog", "soft", rating=np.nan, flags="a reason"), None),
        (AGREE, lambda t: t, None),
        (AGREE, lambda t: at(t, "bee", "soft", std_error=90.0), "bee soft"),
        (AGREE, lambda t: at(t, "bee", "hard", std_error=5.0), "bee hard"),
        (AGREE, lambda t: t.assign(std_error=29.0), "median"),
        (AGREE, lambda t: t.assign(std_error=np.nan), None),  # no bootstrap, nothing to compare
        (NEAR, lambda t: t.assign(residual=t["residual"].mask(t["method"].eq("auto"), 12.5)), None),
        (NEAR, lambda t: t.assign(residual=t["residual"].mask(t["method"].eq("auto"), 12.6)),
         "such as mean absolute residual of hard 30.0, soft 10.0, auto 12.6 (most=12.5, "),
    ],
)  # fmt: skip
def test_ratings_are_checked(heldout, scored_battles, check, change, told):
    tables = (change(heldout), scored_battles) if check is PLACED else (change(heldout),)
    result = check(*tables)
    assert result.passed is (told is None)
    if told:
        assert told in result.description
        assert "ant" not in result.description
        assert result.severity.name == ("ERROR" if check is PLACED else "WARN")


# ------------------------------------------------------------------ methods on common battles

N = 20


def scored() -> pd.DataFrame:
    k, names = np.arange(N), np.array(["a", "b", "c"])
    table = pd.DataFrame({"battle_id": [f"battle-{row}" for row in k], "model_a": names[k % 3]})
    opponents = names[(k + 1 + k // 3 % 2) % 3]
    return table.assign(model_b=opponents, judge_outcome=k % 3 / 2, score_difference=k - 9.5)


def soft(*sources: str, battles=range(N)) -> pd.DataFrame:
    columns = ["battle_id", "source", "outcome", "soft_outcome", "score_difference"]
    rows = [
        (
            f"battle-{k}",
            source,
            k % 2,
            0.25 + k / 100 if source == "likelihood" else np.nan,
            k - 10.0 if source.startswith("score") else np.nan,
        )
        for source in sources
        for k in battles
    ]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[2:], float))


def learnt(n_battles: int = N, method: str = "btl") -> pd.DataFrame:
    rows = [
        (model, f"battle-{k}", method, (k + 30 * fold) / 100)
        for fold, model in enumerate("abc")
        for k in reversed(range(n_battles))
    ]
    return pd.DataFrame(rows, columns=["held_out_model", "battle_id", "method", "outcome"])


def test_every_method_reads_its_own_column() -> None:
    everything = soft("choice", "perplexity", "likelihood", "score", "score-plain")
    both = pd.concat([learnt(), learnt(method="btl2")])
    gathered = gather_methods(scored(), everything, both)
    assert set(gathered.methods) == set(KINDS) - {"hard", "soft"}  # the battles' own
    assert not gathered.notes
    k, of = np.arange(N), gathered.methods
    np.testing.assert_array_equal(of["choice"].outcome, k % 2)
    np.testing.assert_allclose(of["likelihood"].outcome, 0.25 + k / 100)
    np.testing.assert_allclose(of["likelihood-calibrated"].score_difference, k / 100 - 0.25)
    np.testing.assert_allclose(of["score"].score_difference, k - 10)
    assert of["btl"].outcome.shape == (3, N)  # a row per model, in the order of their names
    np.testing.assert_allclose(of["btl"].outcome[2], (k + 60) / 100)
    assert list(MEANINGS) == list(KINDS)


FEW = int(LEAST_SHARE * N) - 1
GAPS = pd.concat(
    soft(source, battles=[k for k in range(N) if k not in gone])
    for source, gone in (("choice", range(3)), ("likelihood", range(3, 6)), ("score", range(6, 9)))
)


@pytest.mark.parametrize(
    ("others", "learnt_by", "n_battles", "available"),
    [
        (soft(), learnt(0), N, {}),
        (soft("choice", battles=range(18)), learnt(17), 17, {"choice": 18, "btl": 17}),
        (soft("choice", battles=range(FEW)), learnt(0), N, {"choice": FEW}),
        (GAPS, learnt(0), 17, {"choice": 17, "score": 17, "score-plain": 0}),
        (soft("likelihood").assign(soft_outcome=[np.nan, *[0.5] * (N - 1)]), learnt(0), N - 1,
         {"likelihood": N - 1}),
    ],
    ids=["rubric alone", "all of them", "one with gaps", "gaps do not add up", "a missing value"],
)  # fmt: skip
def test_methods_keep_the_battles_that_all_of_them_scored(others, learnt_by, n_battles, available):
    gathered = gather_methods(scored(), others, learnt_by)
    assert len(gathered.battles) == n_battles
    assert {name: gathered.available[name] for name in available} == available
    assert set(gathered.notes) | set(gathered.methods) == set(KINDS) - {"hard", "soft"}
    assert all(gathered.notes.values())
    if available.get("choice") == FEW:
        assert f"{FEW} of {N} battles" in gathered.notes["choice"]
    for method in gathered.methods.values():
        values = method.outcome if method.outcome is not None else method.score_difference
        assert np.size(values) in (n_battles, 3 * n_battles)


@pytest.mark.parametrize(
    ("others", "learnt_by", "complaint"),
    [
        (pd.concat([soft("choice"), soft("choice", battles=[0])]), learnt(0),
         r"battle 'battle-0' twice for 'choice'"),
        (soft(), learnt().query("held_out_model != 'c'"), r"no fold for \['c'\]"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_are_refused(others, learnt_by, complaint) -> None:
    with pytest.raises(ValueError, match=complaint):
        gather_methods(scored(), others, learnt_by)


def test_calls_with_one_identity_are_paid_for_once_and_unknown_tokens_are_not_zero() -> None:
    asked = pd.DataFrame(
        {
            "identity": ["x", "x", "y", None],
            "prompt_tokens": pd.array([10, 10, 7, 1], dtype="Int64"),
            "completion_tokens": pd.array([2, 2, 4, 1], dtype="Int64"),
        }
    )
    names = ("verdicts", "choice_verdicts", "score_verdicts")
    spent = count_spending(dict(zip(names, (asked, asked[:0], asked[2:]), strict=True)))
    assert spent["soft"] == spent["hard"] == spent["btl"] == (3, 18, 7)
    assert spent["likelihood"] == (0, 0, 0)
    assert spent["score"] == spent["btl2"] == (2, 8, 5)
    silent = asked.assign(prompt_tokens=pd.array([10, 10, None, 1], dtype="Int64"))
    calls, prompt, said = count_spending(dict.fromkeys(names, silent))["soft"]
    assert (calls, np.isnan(prompt), said) == (3, True, 7)


# ------------------------------------------------------------------ the tables of methods


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    corpora, judges = tmp_path / "corpora.yaml", tmp_path / "judges.yaml"
    corpora.write_text(yaml.safe_dump({"tiny": {"reader": "arena"}}))
    judges.write_text(yaml.safe_dump({"stub": {"kind": "recorded", "family": "none"}}))
    return Catalog(corpora_file=str(corpora), judges_file=str(judges))


@pytest.fixture
def battles(scored_battles: pd.DataFrame) -> pd.DataFrame:
    """The 60 battles ten times over, with scores that err."""
    table = pd.concat([scored_battles] * 10, ignore_index=True)
    noise = np.random.default_rng(4).normal(0, 2, len(table))
    score = np.round(12 * (table["score_difference"] + noise)) / 12
    return table.assign(
        battle_id=[f"battle-{k:03d}" for k in range(len(table))],
        score_difference=score,
        judge_outcome=(np.sign(score) + 1) / 2,
    )


@pytest.fixture
def choices(battles: pd.DataFrame) -> pd.DataFrame:
    """The likelihood of every battle but three, a little surer than the rubric."""
    share = 1 / (1 + np.exp(-1.2 * battles["score_difference"]))
    return pd.DataFrame(
        {
            "battle_id": battles["battle_id"],
            "source": "likelihood",
            "outcome": np.where(share > 0.5, 1.0, 0.0),
            "soft_outcome": share,
            "score_difference": np.nan,
        }
    ).iloc[3:]


@pytest.fixture
def made(catalog, verdicts, monkeypatch):
    """Makes the ratings by all methods, and the table of methods that follows from them."""

    def make(scored, others, change=lambda ratings: ratings):
        rated, rate_methods = [], methods.rate_methods

        def changed(*arguments):
            rated.append(as_table(rate_methods(*arguments)))
            return as_columns(HeldOutRatings, change(rated[0]))

        monkeypatch.setattr(methods, "rate_methods", changed)
        result = ratings.scoring_methods(
            dg.build_asset_context(partition_key=corpus_judge_key("tiny", "stub")),
            scored_battles=scored, soft_outcomes=others, quantitative_outcomes=learnt(0),
            verdicts=verdicts, choice_verdicts=verdicts.head(10), score_verdicts=verdicts.head(0),
            catalog=catalog,
        )  # fmt: skip
        return result, *rated

    return make


def test_methods_are_compared_on_the_battles_of_all(made, battles, choices, verdicts):
    result, rated = made(battles, choices)
    table = result.value
    assert result.metadata["n_battles"] == 597
    assert result.metadata["ratings"].value.startswith("| model | human | hard | soft |")
    assert list(table.columns) == SCORING_METHODS.columns
    assert table["method"].tolist() == list(KINDS)
    compared = table[table["n_battles"] > 0].set_index("method")
    assert set(compared["n_battles"]) == {597}
    assert compared.loc[["soft", "likelihood"], "n_available"].tolist() == [600, 597]
    assert compared["mae"].notna().all()
    assert compared.loc["soft", "n_calls"] == len(verdicts)
    assert compared.loc["likelihood", ["n_calls", "prompt_tokens"]].tolist() == [10, 100]
    absent = table[table["n_battles"] == 0].set_index("method")
    assert absent["mae"].isna().all()
    assert "quantitative_outcomes" in absent.loc["btl", "note"]
    names = {"human", "hard", "soft", "likelihood", "likelihood-calibrated"}
    assert names < set(rated["method"])
    assert rated.groupby("method")["model"].nunique().eq(4).all()
    assert ratings.methods_have_ratings(table).passed
    silent = table.assign(note="", mae=table["mae"].mask(table["method"].eq("soft")))
    check = ratings.methods_have_ratings(silent)
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_a_method_that_rates_some_models_only_has_no_figures(made, battles, choices):
    def partial(table):
        rows = table["method"].str.startswith("likelihood-cal") & table["model"].eq("ant")
        return table.assign(**{name: table[name].mask(rows) for name in ("rating", "residual")})

    result, _ = made(battles, choices, partial)
    row = result.value.set_index("method").loc["likelihood-calibrated"]
    assert row[["mae", "spearman", "coverage", "median_width"]].isna().all()
    assert "it rates 3 of 4 models" in row["note"]


def test_a_withheld_judge_keeps_its_price_and_no_figure(made, battles, choices):
    table = made(battles, choices)[0].value
    both = pd.concat([table.assign(judge="good"), table.assign(judge="bad")], ignore_index=True)
    hidden = without_figures(both, {"bad": "kappa 0.05 < 0.20"})
    good, bad = (hidden[hidden["judge"].eq(judge)] for judge in ("good", "bad"))
    pd.testing.assert_frame_equal(good, both[both["judge"].eq("good")])
    assert bad[list(FIGURES)].isna().all(axis=None)
    kept = ["method", "n_models", "n_battles", "n_available", "n_calls", "prompt_tokens"]
    pd.testing.assert_frame_equal(bad[kept], both.loc[bad.index, kept])
    notes = bad.set_index("method")["note"]
    assert notes["hard"].startswith("withheld: kappa 0.05 < 0.20")
    assert "; no embedded rationales" in notes["btl"]
    pd.testing.assert_frame_equal(without_figures(both, {}), both)
    for compared, passed in ((table, True), (table.assign(spearman=1.5), False)):
        assert result_of(SCORING_METHODS, "methods_have_figures", compared).passed is passed


def test_without_votes_there_is_nothing_to_hold_methods_against(made, battles, choices):
    (result,) = made(battles.assign(human_outcome=np.nan), choices)
    assert "nobody voted" in result.metadata["note"]
    assert list(result.value.columns) == SCORING_METHODS.columns
    assert result.value.empty
    assert ratings.methods_have_ratings(result.value).passed
