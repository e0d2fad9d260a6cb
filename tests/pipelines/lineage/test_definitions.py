import dagster as dg
import pytest

from assets.partitions import CORPUS, CORPUS_JUDGE
from pipelines.definitions import build_definitions, defs
from resources.tables.store import ParquetTables

JOB_NAMES = (
    "corpus_job",
    "judge_job",
    "comparison_job",
    "call_plan_job",
    "candidate_job",
    "placing_job",
    "drift_job",
)
GRAPH = {
    "raw_battles": ("corpus", CORPUS, set()),
    "quarantined_battles": ("corpus", CORPUS, set()),
    "recorded_verdicts": ("corpus", CORPUS, set()),
    "battles": ("corpus", CORPUS, {"raw_battles"}),
    "sampled_battles": ("corpus", CORPUS, {"battles"}),
    "verdicts": ("judging", CORPUS_JUDGE, {"sampled_battles", "recorded_verdicts"}),
    "call_plan": ("judging", CORPUS_JUDGE, {"sampled_battles", "recorded_verdicts"}),
    "scored_battles": ("judging", CORPUS_JUDGE, {"sampled_battles", "verdicts"}),
    "reliability_panel": (
        "judging",
        CORPUS_JUDGE,
        {"sampled_battles", "recorded_verdicts", "verdicts"},
    ),
    "score_verdicts": ("judging", CORPUS_JUDGE, {"sampled_battles"}),
    "choice_verdicts": ("judging", CORPUS_JUDGE, {"sampled_battles", "recorded_verdicts"}),
    "soft_outcomes": (
        "scoring",
        CORPUS_JUDGE,
        {"sampled_battles", "score_verdicts", "choice_verdicts"},
    ),
    "consistency": (
        "diagnostics",
        CORPUS_JUDGE,
        {"sampled_battles", "verdicts", "soft_outcomes"},
    ),
    "rationale_embeddings": ("scoring", CORPUS_JUDGE, {"verdicts", "score_verdicts"}),
    **{
        name: (
            "scoring",
            CORPUS_JUDGE,
            {
                "scored_battles",
                "sampled_battles",
                "verdicts",
                "score_verdicts",
                "rationale_embeddings",
            },
        )
        for name in ("quantitative_outcomes", "quantitative_judges")
    },
    "beta_folds": ("calibration", CORPUS_JUDGE, {"scored_battles"}),
    "heldout_ratings": ("ratings", CORPUS_JUDGE, {"scored_battles", "beta_folds"}),
    "battle_influences": (
        "ratings",
        CORPUS_JUDGE,
        {
            "scored_battles",
            "beta_folds",
            "heldout_ratings",
            "candidate_scores",
            "candidate_ratings",
        },
    ),
    "conformal_calibration": ("uncertainty", CORPUS_JUDGE, {"heldout_ratings", "battles"}),
    "leaderboard": (
        "uncertainty",
        CORPUS_JUDGE,
        {
            "scored_battles",
            "heldout_ratings",
            "conformal_calibration",
            "judge_gate",
            "candidate_ratings",
        },
    ),
    "judge_diagnostics": (
        "diagnostics",
        CORPUS_JUDGE,
        {"scored_battles", "beta_folds", "heldout_ratings"},
    ),
    "judge_gate": (
        "diagnostics",
        CORPUS_JUDGE,
        {"verdicts", "judge_diagnostics", "reliability_panel", "consistency"},
    ),
    "drift_answers": (
        "drift",
        CORPUS_JUDGE,
        {"sampled_battles", "recorded_verdicts", "verdicts", "reliability_panel"},
    ),
    "judge_drift": (
        "drift",
        CORPUS_JUDGE,
        {"drift_answers", "sampled_battles", "reliability_panel"},
    ),
    "missingness": ("diagnostics", CORPUS_JUDGE, {"sampled_battles", "verdicts"}),
    "missing_bounds": (
        "diagnostics",
        CORPUS_JUDGE,
        {"sampled_battles", "scored_battles", "beta_folds", "heldout_ratings"},
    ),
    "adjusted_win_rates": ("win_rates", CORPUS_JUDGE, {"scored_battles"}),
    "adjustment_coverage": ("win_rates", CORPUS_JUDGE, {"scored_battles"}),
    "label_plan": ("win_rates", CORPUS_JUDGE, {"scored_battles"}),
    "reference_ratings": (
        "reference",
        CORPUS_JUDGE,
        {"sampled_battles", "soft_outcomes", "scored_battles"},
    ),
    "reference_diagnostics": (
        "reference",
        CORPUS_JUDGE,
        {
            "reference_ratings",
            "sampled_battles",
            "soft_outcomes",
            "scored_battles",
            "verdicts",
            "choice_verdicts",
        },
    ),
    "rating_systems": (
        "comparison",
        CORPUS,
        {"sampled_battles", "scored_battles", "soft_outcomes", "reference_ratings", "leaderboard"},
    ),
    "pooled_leaderboard": (
        "comparison",
        CORPUS,
        {"leaderboard", "scored_battles", "candidate_scores"},
    ),
    "judge_comparison": (
        "comparison",
        CORPUS,
        {
            "pooled_leaderboard",
            "leaderboard",
            "heldout_ratings",
            "conformal_calibration",
            "judge_diagnostics",
            "verdicts",
            "scored_battles",
        },
    ),
    "report": (
        "comparison",
        CORPUS,
        {
            "judge_comparison",
            "pooled_leaderboard",
            "leaderboard",
            "heldout_ratings",
            "beta_folds",
            "conformal_calibration",
            "judge_diagnostics",
            "missingness",
            "missing_bounds",
            "scored_battles",
            "method_comparison",
            "judge_gate",
            "adjusted_win_rates",
            "adjustment_coverage",
            "label_plan",
            "reference_ratings",
            "reference_diagnostics",
            "consistency",
            "quantitative_judges",
            "battle_influences",
            "attack_controls",
            "predictions",
            "judge_drift",
            "sampled_battles",
            "verdicts",
        },
    ),
    "method_ratings": (
        "scoring",
        CORPUS_JUDGE,
        {"scored_battles", "soft_outcomes", "quantitative_outcomes"},
    ),
    "scoring_methods": (
        "scoring",
        CORPUS_JUDGE,
        {
            "method_ratings",
            "scored_battles",
            "soft_outcomes",
            "quantitative_outcomes",
            "verdicts",
            "choice_verdicts",
            "score_verdicts",
        },
    ),
    "method_comparison": ("comparison", CORPUS, {"scoring_methods", "leaderboard"}),
    "candidates": ("candidates", CORPUS, {"battles", "sampled_battles"}),
    "quarantined_candidates": ("candidates", CORPUS, {"battles", "sampled_battles"}),
    "candidate_battles": (
        "candidates",
        CORPUS,
        {
            "candidates",
            "battles",
            "sampled_battles",
            "heldout_ratings",
            "conformal_calibration",
        },
    ),
    "candidate_verdicts": ("placing", CORPUS_JUDGE, {"candidate_battles"}),
    "candidate_scores": (
        "placing",
        CORPUS_JUDGE,
        {"candidate_battles", "candidate_verdicts"},
    ),
    "candidate_ratings": (
        "placing",
        CORPUS_JUDGE,
        {
            "candidates",
            "candidate_battles",
            "candidate_verdicts",
            "candidate_scores",
            "scored_battles",
            "heldout_ratings",
        },
    ),
    "attack_controls": (
        "placing",
        CORPUS_JUDGE,
        {
            "candidates",
            "candidate_ratings",
            "candidate_scores",
            "scored_battles",
            "heldout_ratings",
            "judge_gate",
        },
    ),
    "predictions": (
        "placing",
        CORPUS_JUDGE,
        {"leaderboard", "candidate_ratings", "scored_battles"},
    ),
}

BLOCKING = {
    ("raw_battles", "battles_have_the_agreed_columns"),
    ("raw_battles", "most_rows_could_be_read"),
    ("battles", "battles_are_clean"),
    ("sampled_battles", "sample_is_a_sample"),
    ("verdicts", "verdicts_are_well_formed"),
    ("verdicts", "answers_have_their_scores"),
    ("verdicts", "both_orders_are_present"),
    ("verdicts", "most_answers_parse"),
    ("scored_battles", "scores_are_in_range"),
    ("scored_battles", "models_are_connected"),
    ("score_verdicts", "scores_are_well_formed"),
    ("choice_verdicts", "choices_are_well_formed"),
    ("soft_outcomes", "soft_outcomes_are_shares"),
    ("rationale_embeddings", "embeddings_are_unique"),
    ("quantitative_outcomes", "every_model_has_every_battle"),
    ("consistency", "consistency_is_sound"),
    ("beta_folds", "beta_is_usable"),
    ("heldout_ratings", "every_model_is_placed"),
    ("conformal_calibration", "thresholds_are_finite"),
    ("leaderboard", "models_are_in_order"),
    ("leaderboard", "intervals_hold_their_rating"),
    ("missingness", "battles_are_accounted_for"),
    ("missing_bounds", "bounds_are_of_the_ratings"),
    ("reference_ratings", "gaps_are_finite"),
    ("judge_comparison", "comparison_is_sound"),
    ("candidate_battles", "candidate_battles_are_sound"),
}
WARNING = {
    ("attack_controls", "controls_stay_low"),
    ("candidate_ratings", "candidates_are_placed"),
    ("candidate_verdicts", "nearly_all_candidate_answers_parse"),
    ("predictions", "fresh_residuals_are_exchangeable"),
    ("predictions", "predictions_cover"),
    ("scoring_methods", "methods_have_ratings"),
    ("method_comparison", "methods_have_figures"),
    ("quarantined_battles", "few_rows_are_quarantined"),
    ("battles", "humans_voted"),
    ("sampled_battles", "sample_covers_the_models"),
    ("verdicts", "answers_name_one_model"),
    ("verdicts", "nearly_all_answers_parse"),
    ("verdicts", "sampled_battles_were_judged"),
    ("reliability_panel", "every_run_scored_the_panel"),
    ("scored_battles", "no_model_holds_others_together"),
    ("scored_battles", "no_model_is_undefeated"),
    ("score_verdicts", "nearly_all_scores_parse"),
    ("score_verdicts", "scores_are_covered"),
    ("choice_verdicts", "nearly_all_choices_parse"),
    ("choice_verdicts", "choices_are_covered"),
    ("choice_verdicts", "choices_survive_a_swap"),
    ("soft_outcomes", "sources_cover_the_sample"),
    ("rationale_embeddings", "most_rationales_are_embedded"),
    ("quantitative_judges", "reasons_do_not_mislead"),
    ("beta_folds", "beta_is_well_determined"),
    ("heldout_ratings", "standard_errors_agree"),
    ("heldout_ratings", "headline_is_near_people"),
    ("battle_influences", "influences_add_up"),
    ("conformal_calibration", "coverage_holds_across_groups"),
    ("leaderboard", "intervals_are_bounded"),
    ("leaderboard", "ratings_are_well_founded"),
    ("judge_diagnostics", "diagnostics_could_be_computed"),
    ("judge_gate", "judge_passed_the_gate"),
    ("judge_gate", "judge_meets_the_other_criteria"),
    ("judge_drift", "judge_has_not_drifted"),
    ("missingness", "models_are_missing_alike"),
    ("missing_bounds", "missing_battles_matter_little"),
    ("adjusted_win_rates", "judge_is_better_than_chance"),
    ("adjusted_win_rates", "win_rates_lie_in_their_intervals"),
    ("adjustment_coverage", "adjusted_intervals_cover"),
    ("reference_diagnostics", "reference_has_reach"),
    ("reference_diagnostics", "errors_are_those_of_resampling"),
    ("rating_systems", "every_system_rates_every_model"),
    ("rating_systems", "systems_agree_on_the_order"),
    ("report", "report_is_self_contained"),
    ("quarantined_candidates", "candidate_files_are_readable"),
    ("candidate_battles", "candidates_have_enough_battles"),
    ("candidate_battles", "candidates_meet_all_strengths"),
    ("candidate_battles", "candidates_speak_all_languages"),
    ("candidate_verdicts", "nearly_all_candidate_answers_parse"),
    ("candidate_ratings", "candidates_are_placed"),
    ("attack_controls", "controls_stay_low"),
    ("predictions", "predictions_cover"),
    ("predictions", "fresh_residuals_are_exchangeable"),
}


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
    assert found == GRAPH


def test_checks_are_pinned(graph):
    found = {
        is_blocking: {
            (key.asset_key.to_user_string(), key.name)
            for key in graph.asset_check_keys
            if graph.get_check_spec(key).blocking is is_blocking
        }
        for is_blocking in (True, False)
    }
    assert found == {True: BLOCKING, False: WARNING}


def test_every_check_is_of_its_assets_partitions(graph):
    for key in graph.asset_check_keys:
        expected = graph.get(key.asset_key).partitions_def
        assert graph.get_check_spec(key).partitions_def == expected, key


def test_every_asset_has_a_catalogue_entry(graph):
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert len(node.description) > 40, key
        assert node.owners == ["team:evaluation"], key
        assert node.kinds, key
        assert node.code_version, key


def test_every_check_says_what_it_guards(graph):
    for key in graph.asset_check_keys:
        assert len(graph.get_check_spec(key).description or "") > 40, key


def made_by(job):
    keys = defs.resolve_job_def(job).asset_layer.executable_asset_keys
    return {key.to_user_string() for key in keys}


def test_the_jobs_make_every_asset_and_three_of_them_none_twice():
    apart = [made_by(name) for name in ("corpus_job", "judge_job", "comparison_job")]
    assert sum(map(len, apart)) == len(set().union(*apart))
    assert set().union(*map(made_by, JOB_NAMES)) == set(GRAPH)


def test_a_judge_is_asked_about_candidates_in_the_job_that_places_them_only():
    candidates = {"candidates", "quarantined_candidates", "candidate_battles"}
    assert made_by("candidate_job") == candidates
    assert "leaderboard" in made_by("placing_job")
    asked = candidates | {"candidate_verdicts"}
    others = ("corpus_job", "judge_job", "comparison_job")
    assert not asked & set().union(*map(made_by, others))


def test_resources_can_be_replaced(tmp_path):
    tables = ParquetTables(base_uri=str(tmp_path))
    assert build_definitions(tables=tables).resources["io_manager"] is tables


def test_no_step_holds_a_place_in_a_pool_before_it_asks() -> None:
    """Places are claimed per endpoint by whoever asks: see `assets.judging.pools`."""
    graph = defs.resolve_asset_graph()
    assert [key for key in graph.executable_asset_keys if graph.get(key).pools] == []
