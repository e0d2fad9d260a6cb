"""The lineage as it is defined: assets, inputs, checks and jobs; and the page that lists it."""

import re

import dagster as dg
import pytest

from assets import provenance
from assets.conditions import versioned
from assets.judging import budgets
from assets.partitions import CORPUS, CORPUS_JUDGE, OF_CORPUS
from judgeline.elo import JUDGE_METHODS
from judgeline.paths import ROOT
from pipelines.definitions import SCHEDULES, SENSORS, build_definitions, defs
from resources.config.corpora import CorpusDefinition
from resources.config.options import CandidateOptions, DriftOptions, RefreshOptions
from resources.tables.declared import TABLES
from resources.tables.store import ParquetTables

JOB_NAMES = (
    "corpus_job", "judge_job", "comparison_job", "candidate_job", "placing_job", "drift_job",
    "ratings_job", "votes_job",
)  # fmt: skip
GRAPH = """
# corpus, by corpus
raw_battles <-
quarantined_battles <-
recorded_verdicts <-
battles <- raw_battles
sampled_battles <- battles
# voting, by corpus
votes <- battles
# judging, by corpus and judge
verdicts <- recorded_verdicts sampled_battles
scored_battles <- sampled_battles verdicts votes
score_verdicts <- sampled_battles
choice_verdicts <- recorded_verdicts sampled_battles
# trust, by corpus and judge
soft_outcomes <- choice_verdicts sampled_battles score_verdicts
consistency <- sampled_battles soft_outcomes verdicts
# quantitative, by corpus and judge
rationale_embeddings <- score_verdicts verdicts
quantitative_outcomes <- rationale_embeddings sampled_battles score_verdicts scored_battles
    verdicts
quantitative_judges <- rationale_embeddings sampled_battles score_verdicts scored_battles
    verdicts
# quantitative, by corpus
learnt_ratings <-
# elo, by corpus and judge
beta_folds <- scored_battles
heldout_ratings <- beta_folds scored_battles
scoring_methods <- choice_verdicts quantitative_outcomes score_verdicts scored_battles
    soft_outcomes verdicts
# intervals, by corpus and judge
conformal_calibration <- battles heldout_ratings
leaderboard <- candidate_ratings conformal_calibration heldout_ratings judge_gate scored_battles
# diagnostics, by corpus and judge
judge_diagnostics <- beta_folds heldout_ratings scored_battles
battle_influences <- beta_folds candidate_battles candidate_ratings candidate_verdicts
    heldout_ratings scored_battles
# reliability, by corpus and judge
reliability_panel <- recorded_verdicts sampled_battles verdicts
judge_gate <- conformal_calibration consistency judge_diagnostics reliability_panel verdicts
drift_answers <- recorded_verdicts reliability_panel sampled_battles verdicts
judge_drift <- drift_answers sampled_battles verdicts
# winrate, by corpus and judge
adjusted_win_rates <- scored_battles
# reference, by corpus and judge
reference_ratings <- choice_verdicts sampled_battles scored_battles soft_outcomes verdicts
# comparison, by corpus
pooled_leaderboard <- candidate_battles candidate_verdicts judge_gate leaderboard scored_battles
judge_comparison <- conformal_calibration heldout_ratings judge_diagnostics leaderboard
    pooled_leaderboard scored_battles verdicts
report <- adjusted_win_rates battle_influences beta_folds candidate_ratings
    conformal_calibration consistency heldout_ratings judge_comparison judge_diagnostics
    judge_drift judge_gate leaderboard pooled_leaderboard predictions quantitative_judges
    reference_ratings sampled_battles scored_battles scoring_methods verdicts
# candidates, by corpus
candidates <- battles sampled_battles
candidate_battles <- battles candidates conformal_calibration heldout_ratings sampled_battles
# candidates, by corpus and judge
candidate_verdicts <- candidate_battles
candidate_ratings <- candidate_battles candidate_verdicts candidates heldout_ratings judge_gate
    scored_battles
predictions <- candidate_ratings heldout_ratings leaderboard scored_battles
"""
"""Asset <- its inputs, by group and partitions."""
BLOCKING = """
battles: battles_are_clean
beta_folds: beta_is_usable
candidate_battles: candidate_battles_are_sound
choice_verdicts: choices_are_well_formed
consistency: consistency_is_sound
heldout_ratings: every_model_is_placed
judge_comparison: comparison_is_sound
leaderboard: intervals_hold_their_rating models_are_in_order
learnt_ratings: predictions_have_their_answers
quantitative_outcomes: every_model_has_every_battle
rationale_embeddings: embeddings_are_unique
raw_battles: battles_have_the_agreed_columns most_rows_could_be_read
reference_ratings: gaps_are_finite
sampled_battles: sample_is_a_sample
score_verdicts: scores_are_well_formed
scored_battles: battles_are_accounted_for models_are_connected scores_are_in_range
soft_outcomes: soft_outcomes_are_shares
verdicts: answers_have_their_scores both_orders_are_present most_answers_parse
    verdicts_are_well_formed
"""
WARNING = """
adjusted_win_rates: adjusted_intervals_cover judge_is_better_than_chance
    win_rates_lie_in_their_intervals
battle_influences: influences_add_up
battles: humans_voted
beta_folds: beta_is_well_determined
candidate_battles: candidates_have_enough_battles candidates_meet_all_strengths
    candidates_speak_all_languages
candidate_ratings: candidates_are_placed candidates_stand_among_people controls_stay_low
candidates: candidate_files_are_readable
candidate_verdicts: nearly_all_candidate_answers_parse
choice_verdicts: choices_are_covered choices_survive_a_swap nearly_all_choices_parse
conformal_calibration: bounds_are_of_the_ratings coverage_holds_across_groups
    missing_battles_matter_little thresholds_are_finite
heldout_ratings: headline_is_near_people standard_errors_agree
judge_diagnostics: diagnostics_could_be_computed
judge_drift: judge_has_not_drifted
judge_gate: judge_meets_the_other_criteria judge_passed_the_gate
leaderboard: intervals_are_bounded models_stand_among_people ratings_are_well_founded
predictions: predictions_cover
quantitative_judges: reasons_do_not_mislead
quarantined_battles: few_rows_are_quarantined
rationale_embeddings: most_rationales_are_embedded
reference_ratings: errors_are_those_of_resampling reference_has_reach
reliability_panel: every_run_scored_the_panel
report: report_is_self_contained
sampled_battles: sample_covers_the_models
score_verdicts: nearly_all_scores_parse scores_are_covered
scored_battles: models_are_missing_alike no_model_holds_others_together no_model_is_undefeated
    raters_vote_with_care
scoring_methods: methods_have_figures methods_have_ratings
soft_outcomes: sources_cover_the_sample
verdicts: answers_name_one_model nearly_all_answers_parse sampled_battles_were_judged
votes: vote_files_are_readable
"""


def entries(text, mark):
    """Lines of a text, a folded one as one: what stands before a mark, and the words after it."""
    for line in re.sub(r"\n +", " ", text).strip().splitlines():
        name, _, words = line.partition(mark)
        yield name.strip(), set(words.split())


def pinned_graph():
    found, place = {}, ()
    for name, parents in entries(GRAPH, "<-"):
        if name.startswith("# "):
            group, by = name[2:].split(", ")
            place = group, CORPUS if by == "by corpus" else CORPUS_JUDGE
        else:
            found[name] = (*place, parents)
    return found


def pinned_checks(text):
    return {(asset, check) for asset, names in entries(text, ":") for check in names}


@pytest.fixture(scope="module")
def graph():
    return defs.resolve_asset_graph()


def test_definitions_load():
    dg.Definitions.validate_loadable(defs)


def test_lineage_is_pinned(graph):
    found = {
        key.to_user_string(): (
            graph.get(key).group_name,
            graph.get(key).partitions_def,
            {parent.to_user_string() for parent in graph.get(key).parent_keys},
        )
        for key in graph.get_all_asset_keys()
    }
    assert found == pinned_graph()


def test_assets_of_a_corpus_are_listed(graph):
    """Judged assets read these by their corpus."""
    found = {key for key in graph.executable_asset_keys if graph.get(key).partitions_def == CORPUS}
    assert {key.to_user_string() for key in found} == OF_CORPUS


def test_checks_are_pinned(graph):
    found = {
        is_blocking: {
            (key.asset_key.to_user_string(), key.name)
            for key in graph.asset_check_keys
            if graph.get_check_spec(key).blocking is is_blocking
        }
        for is_blocking in (True, False)
    }
    assert found == {True: pinned_checks(BLOCKING), False: pinned_checks(WARNING)}


def test_checks_of_new_models_and_of_drift_settle_no_judge(graph):
    """A judge is compared by what its tables of the corpus' own models say."""
    judged = {
        key.asset_key
        for key in graph.asset_check_keys
        if graph.get_check_spec(key).partitions_def == CORPUS_JUDGE
    }
    apart = {key for key in judged if graph.get(key).group_name == "candidates"}
    settling = {spec.asset_key for spec in provenance._specs()}
    assert settling == judged - apart - {dg.AssetKey("judge_drift")}


def test_every_asset_and_check_says_what_it_is(graph):
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert len(node.description) > 40, key
        assert node.owners == ["team:evaluation"], key
        assert node.kinds, key
        assert node.code_version, key
        assert not node.pools, key  # places are claimed per endpoint by who asks: judging.asking
    for key in graph.asset_check_keys:
        assert len(graph.get_check_spec(key).description or "") > 40, key
        expected = graph.get(key.asset_key).partitions_def
        assert graph.get_check_spec(key).partitions_def == expected, key


@pytest.mark.parametrize(
    "name", ["leaderboard", "candidate_ratings", "pooled_leaderboard", "heldout_ratings"]
)
def test_a_table_is_made_again_for_a_new_column_or_method(graph, name):
    own, columns = graph.get(dg.AssetKey(name)).code_version, TABLES[name].columns
    version = own.rpartition(".")[0]
    assert own == versioned(version, columns) != versioned(version, [*columns, "kappa"])
    if name == "heldout_ratings":
        assert version == versioned(version.partition(".")[0], JUDGE_METHODS)


def made_by(job):
    keys = defs.resolve_job_def(job).asset_layer.executable_asset_keys
    return {key.to_user_string() for key in keys}


def test_the_jobs_make_every_asset_and_three_of_them_none_twice():
    apart = [made_by(name) for name in ("corpus_job", "judge_job", "comparison_job")]
    assert sum(map(len, apart)) == len(set().union(*apart))
    assert set().union(*map(made_by, JOB_NAMES)) == set(pinned_graph())


def test_a_judge_is_asked_about_candidates_in_the_job_that_places_them_only():
    candidates = {"candidates", "candidate_battles"}
    assert made_by("candidate_job") == candidates
    assert "leaderboard" in made_by("placing_job")
    asked = candidates | {"candidate_verdicts"}
    others = ("corpus_job", "judge_job", "comparison_job")
    assert not asked & set().union(*map(made_by, others))


def test_tables_that_no_leaderboard_needs_are_made_after_it(graph):
    judged = {dg.AssetKey(name) for name in made_by("judge_job")}
    needed = dg.AssetSelection.assets("leaderboard").upstream().resolve(graph)
    tags = {key: graph.get(key).assets_def.op.tags for key in judged}
    late = {key for key in judged if int(tags[key].get("dagster/priority", 0)) < 0}
    assert late == judged - needed


def test_resources_can_be_replaced(tmp_path):
    tables = ParquetTables(base_uri=str(tmp_path))
    assert build_definitions(tables=tables).resources["io_manager"] is tables


# what works by itself and what it may spend are in the page that says so

PAGE = (ROOT / "docs" / "judges-and-schedules.md").read_text(encoding="utf-8")
BY_ITSELF = "What runs by itself, and what never does"
ASKING = (
    "verdicts", "score_verdicts", "choice_verdicts", "reliability_panel", "rationale_embeddings",
    "candidate_verdicts", "drift_answers", "learnt_ratings",
)  # fmt: skip


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return found


def test_everything_that_runs_by_itself_is_listed() -> None:
    told = section(BY_ITSELF)
    working = {one.name for one in (*SENSORS, *SCHEDULES)}
    assert {name for name in working if f"`{name}`" not in told} == set()


def test_every_table_that_asks_is_listed() -> None:
    (told,) = re.findall(
        r"These tables are made only when.*?condition", section(BY_ITSELF), re.DOTALL
    )
    assert [name for name in ASKING if f"`{name}`" not in told] == []


def test_the_catalogue_shows_which_tables_ask(graph) -> None:
    keys = graph.executable_asset_keys
    asking = {key.to_user_string() for key in keys if "openai" in graph.get(key).kinds}
    assert asking == set(ASKING)


def test_every_budget_is_listed() -> None:
    told = section("Budgets of runs that nobody types")
    blocks = {"refresh": RefreshOptions, "candidates": CandidateOptions, "drift": DriftOptions}
    capped = {
        name: field.annotation
        for name, field in CorpusDefinition.model_fields.items()
        if "budget" in getattr(_model(field.annotation), "model_fields", {})
    }
    assert capped.keys() == blocks.keys()
    rows = [f"| `{block}.budget` of the corpus |" for block in blocks]
    rows.append(f"| `{budgets.VARIABLE}` in the environment of the process that asks")
    assert [row for row in rows if row not in told] == []


def _model(annotation: object) -> object:
    """Return the type of an option that may be left out."""
    alternatives = getattr(annotation, "__args__", (annotation,))
    return next(one for one in alternatives if one is not type(None))


def test_the_picture_in_the_readme_is_small_and_true(graph) -> None:
    (drawn,) = re.findall(r"```mermaid(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    arrows = re.findall(r"(\w+)(?:\[[^\]]*\])? --> (?=(\w+))", drawn)
    assert len({*sum(arrows, ())}) <= 12
    assert [f"{a} -> {b}" for a, b in arrows if dg.AssetKey(a) not in parents(graph, b)] == []


def parents(graph, name):
    return graph.get(dg.AssetKey(name)).parent_keys


def test_a_watch_that_was_missed_shows_in_the_catalogue(graph):
    policy = graph.get(dg.AssetKey("drift_answers")).freshness_policy
    days = [window.to_timedelta().days for window in (policy.warn_window, policy.fail_window)]
    assert days == [8, 15]
