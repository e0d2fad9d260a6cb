import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml

from assets.corpus import assets as corpus
from assets.judging import assets as judging
from assets.judging import choices, single_scores
from assets.judging.forms import why_not_asked
from assets.partitions import corpus_judge_key, register
from assets.trust import assets as module
from assets.trust.consistency import ALL, CONSISTENCY_DTYPES, OVERALL
from assets.trust.scoring import SOFT_DTYPES
from judgeline.io import SCORE_COLUMNS
from resources.config.catalog import Catalog
from resources.judges.budget import Budget
from resources.judges.forms.choice import CHOICE_DTYPES
from resources.judges.forms.score import SCORE_DTYPES
from resources.judges.recorded import recorded_choices
from resources.store.resource import StoredVerdicts
from resources.tables.store import ParquetTables, open_store
from resources.tables.trust import CONSISTENCY, SOFT_OUTCOMES, SOURCES

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR

TRAITS = {
    **dict.fromkeys(("mood", "taste", "style_taste", "verbosity_bias", "family_bias"), 0.2),
    **dict.fromkeys(("malformed_rate", "refusal_rate", "truncated_rate"), 0.01),
    "seed": 3,
    "noise": 1.0,
    "position_bias": 0.5,
}
JUDGE = {"display_name": "Asked", "family": "fern", "kind": "builtin", "builtin": TRAITS}
JUDGES = {
    "asked": {**JUDGE, "asks": ["rubric", "score", "choice"]},
    "plain": JUDGE,
}
CORPUS = {
    "display_name": "Tiny",
    "reader": "arena",
    "arena": {"n_prompts": 4, "n_voted": 8, "n_new": 1, "n_battles": 90},
}
MADE = ("score_verdicts", "choice_verdicts", "soft_outcomes", "consistency")


class Lineage:
    """The stored tables of two judges on a tiny arena, and what was said of them."""

    def __init__(self, folder, instance: dg.DagsterInstance) -> None:
        self.folder, self.instance = folder, instance
        for name, content in (("corpora", {"tiny": CORPUS}), ("judges", JUDGES)):
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        self.resources = {
            "catalog": Catalog(
                corpora_file=str(folder / "corpora.yaml"), judges_file=str(folder / "judges.yaml")
            ),
            "io_manager": ParquetTables(base_uri=str(folder / "tables")),
            "verdict_store": StoredVerdicts(uri=str(folder / "bought")),
            "budget": Budget(),
        }

    def make(self, *judges: str) -> None:
        register(self.instance, corpora=["tiny"], judges=judges)
        self._run(dg.AssetSelection.groups("corpus"), "tiny")
        for judge in judges:
            self._run(dg.AssetSelection.assets("verdicts", *MADE), corpus_judge_key("tiny", judge))

    def _run(self, wanted: dg.AssetSelection, partition) -> None:
        dg.materialize(
            dg.load_assets_from_modules([corpus, judging, choices, single_scores, module]),
            selection=wanted.without_checks(),
            partition_key=partition,
            instance=self.instance,
            resources=self.resources,
        )

    def stored(self, asset: str, judge: str) -> pd.DataFrame:
        return open_store(str(self.folder / "tables")).stored(asset, "tiny", judge)

    def metadata(self, asset: str, judge: str) -> dict:
        records = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(
                dg.AssetKey(asset), asset_partitions=[corpus_judge_key("tiny", judge)]
            ),
            limit=1,
        ).records
        return {k: v.value for k, v in records[0].asset_materialization.metadata.items()}


@pytest.fixture(scope="module")
def lineage(tmp_path_factory):
    with dg.DagsterInstance.ephemeral() as instance:
        made = Lineage(tmp_path_factory.mktemp("trust"), instance)
        made.make("asked", "plain")
        yield made


def test_every_source_reaches_the_soft_outcomes(lineage) -> None:
    found = lineage.stored("soft_outcomes", "asked")
    assert found["source"].unique().tolist() == list(SOURCES)
    assert found.groupby("source").size().between(80, 90).all()  # 1 to 4 % of the answers failed
    assert found["soft_outcome"].notna().eq(found["source"].eq("likelihood")).all()
    said = lineage.stored("choice_verdicts", "asked")
    assert set(said["evidence"]) == {"log-probabilities", "none"}
    bought = lineage.metadata("choice_verdicts", "asked")
    assert bought["n_asked"] == 180
    assert bought["n_log_probabilities"] == said["status"].eq("ok").sum()
    assert bought["first_shown_share"] > 0.5  # its declared bias


def test_consistency_has_conflicts_violations_and_criteria(lineage) -> None:
    found = lineage.stored("consistency", "asked")
    whole = found[found["category"].eq(ALL)]
    assert set(whole["measure"]) == {"conflict-ratio", "non-transitivity"}
    assert set(whole["source"]) == {"likelihood", "choice", "rubric"}
    assert set(whole["dimension"]) == {OVERALL, *(name[:-2] for name in SCORE_COLUMNS)}
    threes = whole[whole["size"].eq(3)]
    assert (threes["n"] > 0).all()
    assert threes["ratio"].between(0, 1).all()


def test_a_judge_that_is_not_asked_has_empty_tables_and_a_note(lineage) -> None:
    for asset, dtypes in (
        ("score_verdicts", SCORE_DTYPES),
        ("choice_verdicts", CHOICE_DTYPES),
        ("soft_outcomes", SOFT_DTYPES),
    ):
        table = lineage.stored(asset, "plain")
        assert table.empty, asset
        assert list(table) == list(dtypes), asset
        assert "asks" in lineage.metadata(asset, "plain")["note"], asset
    rest = lineage.stored("consistency", "plain")
    assert list(rest) == list(CONSISTENCY_DTYPES)
    assert set(rest["source"]) == {"rubric"}  # its rubric can still contradict itself
    assert set(rest["measure"]) == {"non-transitivity"}
    assert "asks" in lineage.metadata("consistency", "plain")["note"]


def test_a_corpus_without_texts_is_not_asked_about(lineage) -> None:
    asked = lineage.resources["catalog"].judge("asked")
    silent = pd.DataFrame({"completion_a": [None, None], "completion_b": [None, None]})
    assert "has no texts" in why_not_asked(asked, "score", silent)
    partly = silent.assign(completion_a=["here", None])
    assert why_not_asked(asked, "score", partly) is None  # a hole is an error, not an absence


def test_nothing_is_bought_twice(lineage) -> None:
    before = {name: lineage.stored(name, "asked") for name in MADE}
    lineage.make("asked")
    for name in MADE[:2]:
        seen = lineage.metadata(name, "asked")
        assert seen["n_asked"] == seen["n_retried"] < 10  # what could not be read, once more
    for name in MADE:
        pd.testing.assert_frame_equal(lineage.stored(name, "asked"), before[name])


def first(column, value):
    def breakage(table):
        table = table.reset_index(drop=True)
        table[column] = table[column].astype(object)
        table.loc[0, column] = value
        return table

    return breakage


@pytest.fixture
def told(lineage) -> pd.DataFrame:
    table = lineage.stored("choice_verdicts", "asked")
    return table[table["status"].eq("ok")].reset_index(drop=True)


@pytest.fixture
def graded(lineage) -> pd.DataFrame:
    table = lineage.stored("score_verdicts", "asked")
    return table[table["status"].eq("ok")].reset_index(drop=True)


@pytest.mark.parametrize(
    ("breakage", "message"),
    [
        (first("p_a", 1.5), "p_a, p_tie, p_b, covered are 1 or less"),
        (first("p_tie", -0.5), "are 0 or more"),
        (first("p_tie", None), "add up to 1, or none is known"),
        (lambda t: t.assign(p_a=t["p_a"] / 2), "add up to 1"),
        (first("choice", 0.75), "choice is 1, 0.5, 0 or null"),
        (first("order", "CD"), "order is AB, BA or mean"),
        (first("status", "refusal"), "and a failed one nothing"),
        (first("status", "bored"), "status is one of"),
        (first("evidence", "hearsay"), "evidence is one of"),
        (first("identity", None), "identity are known"),
        (lambda t: pd.concat([t, t.head(1)]), "one verdict per replicate"),
    ],
)
def test_malformed_choices_stop_the_lineage(told, breakage, message) -> None:
    assert choices.choices_are_well_formed(told).passed
    result = choices.choices_are_well_formed(breakage(told))
    assert not result.passed
    assert result.severity == ERROR
    assert message in result.description


@pytest.mark.parametrize(
    ("breakage", "message"),
    [
        (first("expected_score", 11.0), "expected_score lies in [1, 10]"),
        (first("score", None), "an answer that is ok says something"),
        (first("covered", 2.0), "covered are 1 or less"),
        (lambda t: pd.concat([t, t.head(1)]), "one verdict per replicate"),
    ],
)
def test_malformed_scores_stop_the_lineage(graded, breakage, message) -> None:
    assert single_scores.scores_are_well_formed(graded).passed
    result = single_scores.scores_are_well_formed(breakage(graded))
    assert not result.passed
    assert result.severity == ERROR
    assert message in result.description


def test_thin_evidence_and_lost_answers_warn(told, graded) -> None:
    lost = graded.assign(status=np.where(np.arange(len(graded)) % 10 == 0, "refusal", "ok"))
    for check, good, bad in (
        (choices.choices_are_covered, told, told.assign(covered=0.4)),
        (single_scores.scores_are_covered, graded, graded.assign(covered=0.4)),
        (single_scores.nearly_all_scores_parse, graded, lost),
        (choices.nearly_all_choices_parse, told, told.assign(status="parse_error")),
        (choices.choices_survive_a_swap, told, told.assign(choice=told["order"].eq("AB") * 1.0)),
    ):
        assert check(good).passed, check
        result = check(bad)
        assert not result.passed, check
        assert result.severity == WARN, check


def test_checks_of_empty_tables_pass(lineage) -> None:
    score, choice = (lineage.stored(name, "plain") for name in MADE[:2])
    assert single_scores.scores_are_well_formed(score).passed
    assert single_scores.scores_are_covered(score).passed
    assert single_scores.nearly_all_scores_parse(score).passed
    assert choices.choices_are_well_formed(choice).passed
    assert choices.choices_are_covered(choice).passed
    assert choices.nearly_all_choices_parse(choice).passed
    assert choices.choices_survive_a_swap(choice).passed


@pytest.mark.parametrize(
    ("breakage", "message"),
    [
        (first("outcome", 0.7), "outcome is 1, 0.5 or 0"),
        (first("outcome", None), "outcome is known"),
        (first("soft_outcome", 1.2), "soft_outcome lies in [0, 1]"),
        (first("score_difference", 9.5), "score_difference lies in [-9, 9]"),
        (first("source", "hunch"), "source is one of"),
        (lambda t: pd.concat([t, t.head(1)]), "one row per source"),
    ],
)
def test_impossible_outcomes_stop_the_lineage(lineage, breakage, message) -> None:
    table = lineage.stored("soft_outcomes", "asked")
    assert SOFT_OUTCOMES.check("soft_outcomes_are_shares", table).passed
    result = SOFT_OUTCOMES.check("soft_outcomes_are_shares", breakage(table))
    assert not result.passed
    assert result.severity == ERROR
    assert message in result.description


def test_a_source_that_misses_many_battles_warns(lineage) -> None:
    table = lineage.stored("soft_outcomes", "asked").query("source != 'perplexity'")
    sample = pd.DataFrame({"battle_id": table["battle_id"].unique()[:80]})
    assert module.sources_cover_the_sample(table, sample).passed
    thin = table[table["source"].ne("score") | (np.arange(len(table)) % 2 == 0)]
    result = module.sources_cover_the_sample(thin, sample)
    assert not result.passed
    assert result.severity == WARN
    assert "score" in result.description


@pytest.mark.parametrize(
    ("breakage", "message"),
    [
        (first("ratio", 1.5), "ratio lies in [0, 1]"),
        (first("n", 0), "only where, something was counted"),
        (lambda t: t.assign(circular=1.0, ratio=0.5), "are parts of the ratio"),
    ],
)
def test_unfounded_ratios_are_noticed(lineage, breakage, message) -> None:
    table = lineage.stored("consistency", "asked")
    assert CONSISTENCY.check("consistency_is_sound", table).passed
    result = CONSISTENCY.check("consistency_is_sound", breakage(table))
    assert not result.passed
    assert message in result.description


BATTLES = pd.DataFrame({"battle_id": ["b0", "b1", "b2"]})


def published(*rows: tuple[str, str, float | None], scores: float | None = None) -> pd.DataFrame:
    """Recorded verdicts of battle, order and outcome; no outcome is a failed verdict."""
    table = pd.DataFrame(rows, columns=["battle_id", "order", "recorded_outcome"])
    return table.assign(
        judge="stub",
        replicate=0,
        status=np.where(table["recorded_outcome"].isna(), "parse_error", "ok"),
        answer="m",
        log_probabilities=None,
        prompt_tokens=pd.Series([None] * len(table), dtype="Int64"),
        completion_tokens=pd.Series([None] * len(table), dtype="Int64"),
        identity="0",
        **dict.fromkeys(SCORE_COLUMNS, scores),
    )


def test_published_means_are_probabilities() -> None:
    own = published(("b0", "mean", 0.73), ("b1", "mean", 1.0), ("b2", "mean", None))
    found = recorded_choices(own, BATTLES, "stub")
    assert list(found) == list(CHOICE_DTYPES)
    assert found["p_a"].tolist()[:2] == [0.73, 1.0]
    assert found["p_b"].tolist()[:2] == [pytest.approx(0.27), 0.0]
    assert found["p_tie"].tolist()[:2] == [0.0, 0.0]
    assert found["evidence"].tolist() == ["published", "published", "none"]
    assert found["choice"].isna().tolist() == [True, False, True]  # 0.73 is nothing that was said
    assert found["status"].tolist() == ["ok", "ok", "parse_error"]
    assert choices.choices_are_well_formed(found).passed


def test_published_games_are_choices() -> None:
    own = published(("b0", "AB", 1.0), ("b0", "BA", 0.5), ("b9", "AB", 1.0))
    found = recorded_choices(own, BATTLES, "stub")
    assert found["choice"].tolist() == [1.0, 0.5]  # b9 was not sampled
    assert found["p_a"].isna().all()
    assert set(found["evidence"]) == {"none"}
    assert choices.choices_are_well_formed(found).passed


def test_preferences_of_a_weighted_judge_are_probabilities_in_either_order() -> None:
    own = published(("b0", "AB", 0.8), ("b0", "BA", 1.0))
    assert recorded_choices(own, BATTLES, "stub")["p_a"].tolist() == [0.8, 1.0]


def test_rubric_scores_and_other_judges_are_no_choices() -> None:
    own = published(("b0", "mean", 1.0))
    assert recorded_choices(published(("b0", "mean", 1.0), scores=5.0), BATTLES, "stub").empty
    assert recorded_choices(own, BATTLES, "other").empty
    assert recorded_choices(published(("b0", "AB", None)), BATTLES, "stub").empty
