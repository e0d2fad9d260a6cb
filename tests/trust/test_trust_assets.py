"""Assets of trust on a tiny arena: choices and scores bought, outcomes, contradictions."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from catalogs import catalog_of

from assets.corpus import assets as corpus
from assets.judging import assets as judging
from assets.judging.asking import why_not_asked
from assets.messages import PROGRESS
from assets.partitions import corpus_judge_key, register
from assets.trust import assets as module
from assets.voting import assets as voting
from judgeline.judges.annotation import recorded_choices
from judgeline.judges.budget import Budget
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.tables.judging import CHOICE_VERDICTS, SCORE_VERDICTS
from judgeline.tables.trust import ALL, CONSISTENCY, OVERALL, SOFT_OUTCOMES, SOURCES
from resources.stores import StoredVerdicts
from resources.tables.expectations import result_of, results_of
from resources.tables.store import ParquetTables, open_store

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR

TRAITS = {
    **dict.fromkeys(("mood", "taste", "style_taste", "verbosity_bias", "family_bias"), 0.2),
    **dict.fromkeys(("malformed_rate", "refusal_rate", "truncated_rate"), 0.01),
    "seed": 3,
    "noise": 1.0,
    "position_bias": 0.5,
}
JUDGE = {"display_name": "Asked", "family": "fern", "kind": "builtin", "builtin": TRAITS}
JUDGES = {"asked": {**JUDGE, "asks": ["rubric", "score", "choice"]}, "plain": JUDGE}
CORPUS = {
    "display_name": "Tiny",
    "reader": "arena",
    "arena": {"n_prompts": 4, "n_voted": 8, "n_new": 1, "n_battles": 90},
}
ASKED = (SCORE_VERDICTS, CHOICE_VERDICTS, SOFT_OUTCOMES, CONSISTENCY)
MADE = tuple(table.name for table in ASKED)


class Lineage:
    """The stored tables of two judges on a tiny arena, and what was said of them."""

    def __init__(self, folder, instance: dg.DagsterInstance) -> None:
        self.folder, self.instance = folder, instance
        self.resources = {
            "catalog": catalog_of(folder, corpora={"tiny": CORPUS}, judges=JUDGES),
            "io_manager": ParquetTables(base_uri=str(folder / "tables")),
            "verdict_store": StoredVerdicts(uri=str(folder / "bought")),
            "budget": Budget(),
        }

    def make(self, *judges: str) -> None:
        register(self.instance, corpora=["tiny"], judges=judges)
        of_corpus = dg.AssetSelection.assets("sampled_battles").upstream()
        self._run(of_corpus.required_multi_asset_neighbors(), "tiny")
        for judge in judges:
            self._run(dg.AssetSelection.assets("verdicts", *MADE), corpus_judge_key("tiny", judge))

    def _run(self, wanted: dg.AssetSelection, partition) -> None:
        dg.materialize(
            dg.load_assets_from_modules([corpus, voting, judging, module]),
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


@pytest.mark.slow
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


def test_progress_names_the_form_where_a_judge_is_asked_in_several(lineage) -> None:
    runs = lineage.instance.get_runs()
    logged = (entry for run in runs for entry in lineage.instance.all_logs(run.run_id))
    words = (entry.user_message.removeprefix(PROGRESS) for entry in logged)
    told = {text.partition("answered ")[0] for text in words if " answered " in text}
    forms = ("rubric", "score", "choice")
    assert {text for text in told if text.startswith(("asked", "plain"))} == {
        "plain ", *(f"asked, {form}: " for form in forms)
    }  # fmt: skip


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
    for table in (SCORE_VERDICTS, CHOICE_VERDICTS, SOFT_OUTCOMES):
        stored = lineage.stored(table.name, "plain")
        assert stored.empty, table.name
        assert list(stored) == table.columns
        assert "asks" in lineage.metadata(table.name, "plain")["note"], table.name
        assert all(one.passed for one in results_of(table, stored))
    rest = lineage.stored("consistency", "plain")
    assert list(rest) == CONSISTENCY.columns
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


@pytest.mark.parametrize("table", ASKED, ids=lambda table: table.name)
def test_tables_as_they_are_made_keep_every_rule(lineage, table) -> None:
    results = results_of(table, lineage.stored(table.name, "asked"))
    assert [one.description for one in results if not one.passed] == []


@pytest.mark.parametrize(
    ("table", "check", "cells", "severity"),
    [
        (CHOICE_VERDICTS, "choices_are_covered", {"covered": 0.4}, WARN),
        (SCORE_VERDICTS, "scores_are_well_formed", {"score": np.nan}, ERROR),
    ],
)
def test_answers_that_say_too_little_are_found(lineage, table, check, cells, severity) -> None:
    said = lineage.stored(table.name, "asked").query("status == 'ok'")
    result = result_of(table, check, said.assign(**cells))
    assert (result.passed, result.severity) == (False, severity)


def test_a_source_that_misses_many_battles_warns(lineage) -> None:
    table = lineage.stored("soft_outcomes", "asked").query("source != 'perplexity'")
    sample = pd.DataFrame({"battle_id": table["battle_id"].unique()[:80]})
    assert module.sources_cover_the_sample(table, sample).passed
    thin = table[table["source"].ne("score") | (np.arange(len(table)) % 2 == 0)]
    result = module.sources_cover_the_sample(thin, sample)
    assert not result.passed
    assert result.severity == WARN
    assert "score" in result.description


# ------------------------------------------------------------------ published choices


def recorded(*rows: tuple[str, str, float | None], judge="stub", scores=None) -> pd.DataFrame:
    """Choices that recorded verdicts of battle, order and outcome are; no outcome has failed."""
    table = pd.DataFrame(rows, columns=["battle_id", "order", "recorded_outcome"])
    count = pd.Series([None] * len(table), dtype="Int64")
    own = table.assign(
        judge="stub",
        replicate=0,
        status=np.where(table["recorded_outcome"].isna(), "parse_error", "ok"),
        answer="m",
        log_probabilities=None,
        prompt_tokens=count,
        completion_tokens=count,
        identity="0",
        **dict.fromkeys(SCORE_COLUMNS, scores),
    )
    found = recorded_choices(own, pd.DataFrame({"battle_id": ["b0", "b1", "b2"]}), judge)
    assert result_of(CHOICE_VERDICTS, "choices_are_well_formed", found).passed
    return found


def test_published_means_are_probabilities() -> None:
    found = recorded(("b0", "mean", 0.73), ("b1", "mean", 1.0), ("b2", "mean", None))
    assert list(found) == CHOICE_VERDICTS.columns
    assert found["p_a"].tolist()[:2] == [0.73, 1.0]
    assert found["p_b"].tolist()[:2] == [pytest.approx(0.27), 0.0]
    assert found["p_tie"].tolist()[:2] == [0.0, 0.0]
    assert found["evidence"].tolist() == ["published", "published", "none"]
    assert found["choice"].isna().tolist() == [True, False, True]  # 0.73 is nothing that was said
    assert found["status"].tolist() == ["ok", "ok", "parse_error"]


def test_published_games_are_choices_and_weighted_ones_probabilities() -> None:
    games = recorded(("b0", "AB", 1.0), ("b0", "BA", 0.5), ("b9", "AB", 1.0))
    assert games["choice"].tolist() == [1.0, 0.5]  # b9 was not sampled
    assert games["p_a"].isna().all()
    assert set(games["evidence"]) == {"none"}
    assert recorded(("b0", "AB", 0.8), ("b0", "BA", 1.0))["p_a"].tolist() == [0.8, 1.0]


@pytest.mark.parametrize(
    ("outcome", "more"), [(1.0, {"scores": 5.0}), (1.0, {"judge": "other"}), (None, {})]
)
def test_rubric_scores_other_judges_and_failures_are_no_choices(outcome, more) -> None:
    assert recorded(("b0", "AB", outcome), **more).empty
