"""Reasons of judges on the lineage: embedded, learnt from, and absent with a note."""

import json
from functools import partial
from pathlib import Path

import dagster as dg
import minilm_server
import numpy as np
import pandas as pd
import pytest
from catalogs import catalog_of

from assets.partitions import corpus_judge_key
from assets.quantitative.assets import quantitative_judges, quantitative_outcomes
from assets.quantitative.embeddings import most_rationales_are_embedded, rationale_embeddings
from judgeline.io import score_battles
from judgeline.judges.forms.score import completions_of
from judgeline.tables.judging import SCORE_VERDICTS
from judgeline.tables.quantitative import (
    QUANTITATIVE_JUDGES,
    QUANTITATIVE_OUTCOMES,
    RATIONALE_EMBEDDINGS,
)
from judgeline.verdict.outcomes import CRITERIA
from resources.config.catalog import Catalog
from resources.stores import StoredEmbeddings, StoredVerdicts
from resources.tables.expectations import result_of, results_of

MODELS = ("ant", "bee", "cat", "dog", "new")
N = 320
NO_SCORES = SCORE_VERDICTS.empty()


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    corpora = "c: {reader: arena, embeddings: hashed}\nbare: {reader: arena}"
    return catalog_of(tmp_path, corpora=corpora)


@pytest.fixture
def battles() -> pd.DataFrame:
    """Battles of five models; nobody voted on those of "new". A's luck decides each."""
    rng = np.random.default_rng(1)
    pairs = [(a, b) for a in MODELS for b in MODELS if a < b] * (N // 10)
    a_wins = rng.random(N) < 0.5
    voted = [("new" not in pair) for pair in pairs]
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(N)],
            "question_id": [f"q{i // 4}" for i in range(N)],
            "cluster_id": [f"q{i // 4}" for i in range(N)],
            "model_a": [a for a, _ in pairs],
            "model_b": [b for _, b in pairs],
            "language": "en",
            "human_outcome": np.where(voted, a_wins, np.nan).astype(float),
            "instruction": "Say something.",
            "completion_a": [f"{'good' if w else 'bad'} {i}" for i, w in enumerate(a_wins)],
            "completion_b": [f"{'bad' if w else 'good'} {i}" for i, w in enumerate(a_wins)],
        }
    )


@pytest.fixture
def judged(battles: pd.DataFrame) -> pd.DataFrame:
    """A judge whose scores are noise and whose reasons say who deserves to win."""
    rng = np.random.default_rng(2)
    rows = pd.concat([battles.assign(order=order) for order in ("AB", "BA")], ignore_index=True)
    a_wins = rows["completion_a"].str.startswith("good")
    first_wins = a_wins.eq(rows["order"].eq("AB"))
    scores = {
        f"{criterion}_{side}": rng.integers(4, 8, len(rows)).astype(float)
        for side in "ab"
        for criterion in CRITERIA
    }
    reasons = np.where(first_wins, "The first convinces.", "A wrong answer comes first, sadly.")
    return pd.DataFrame(
        {
            "battle_id": rows["battle_id"],
            "judge": "j",
            "order": rows["order"],
            "replicate": 0,
            "status": "ok",
            **scores,
            "recorded_outcome": np.nan,
            "answer": [f"{json.dumps({})}\n\n{reason}" for reason in reasons],
        }
    )


@pytest.fixture
def scores(battles: pd.DataFrame) -> pd.DataFrame:
    """Single scores that are noise, with reasons that are not."""
    table = completions_of(battles)
    is_good = table["completion"].str.startswith("good")
    values = np.random.default_rng(3).integers(4, 8, len(table))
    reasons = np.where(is_good, "Convincing and right.", "Wrong, sadly.")
    return table[["completion_id", "question_id", "model"]].assign(
        replicate=0,
        status="ok",
        expected_score=values.astype(float),
        answer=[f"{value}\n\n{reason}" for value, reason in zip(values, reasons, strict=True)],
    )


def context(corpus: str = "c") -> dg.AssetExecutionContext:
    return dg.build_asset_context(partition_key=corpus_judge_key(corpus, "j"))


def embed(judged, scores, catalog, tmp_path, corpus="c"):
    stores = StoredVerdicts(uri=str(tmp_path / "v")), StoredEmbeddings(uri=str(tmp_path / "e"))
    return rationale_embeddings(context(corpus), judged, scores, catalog, *stores)


def covered(embeddings, judged, scores, catalog, corpus="c"):
    partition = dg.build_op_context(partition_key=corpus_judge_key(corpus, "j"))
    return most_rationales_are_embedded(partition, embeddings, judged, scores, catalog)


def learn(asset, battles, judged, scores, embeddings, catalog):
    scored = score_battles(battles, judged)
    return asset(context(), scored, battles, judged, scores, embeddings, catalog)


@pytest.fixture
def embeddings(judged, scores, catalog, tmp_path) -> pd.DataFrame:
    return embed(judged, scores, catalog, tmp_path).value


def test_every_reason_has_a_vector_and_an_empty_store_none(judged, scores, catalog, tmp_path):
    result = embed(judged, scores, catalog, tmp_path)
    assert result.value.groupby("source").size().to_dict() == {"score": 2 * N, "verdict": 2 * N}
    assert {vector.size for vector in result.value["embedding"]} == {256}
    assert (result.metadata["n_texts"], result.metadata["n_without_rationale"]) == (4, 0)
    assert not (tmp_path / "e").exists()  # hashed vectors are not worth keeping


@pytest.mark.parametrize(
    ("corpus", "answer", "told"),
    [
        ("bare", None, "corpus 'bare' names no 'embeddings'"),
        ("c", "{}", f"none of the {2 * N} usable answers of judge 'j' gives a reason"),
        ("c", None, f"none of the {2 * N} usable answers"),
    ],
)
def test_without_embeddings_all_is_empty(battles, judged, catalog, tmp_path, corpus, answer, told):
    silent = judged.assign(answer=pd.Series([answer] * len(judged), dtype="str"))
    result = embed(silent, NO_SCORES, catalog, tmp_path, corpus)
    assert result.value.empty
    assert told in result.metadata["note"]
    assert result_of(RATIONALE_EMBEDDINGS, "embeddings_are_unique", result.value).passed
    assert covered(result.value, silent, NO_SCORES, catalog, corpus).passed
    for asset, table in (
        (quantitative_outcomes, QUANTITATIVE_OUTCOMES),
        (quantitative_judges, QUANTITATIVE_JUDGES),
    ):
        made = learn(asset, battles, silent, NO_SCORES, result.value, catalog)
        pd.testing.assert_frame_equal(made.value, table.empty())
        assert all(check.passed for check in results_of(table, made.value))
        assert "note of rationale_embeddings" in made.metadata["note"]


def test_outcomes_follow_reasons_in_every_fold(battles, judged, scores, embeddings, catalog):
    result = learn(quantitative_outcomes, battles, judged, scores, embeddings, catalog)
    table = result.value
    assert table.groupby(["method", "held_out_model"]).size().tolist() == [N] * 10
    assert "note" not in result.metadata
    a_wins = battles.set_index("battle_id")["completion_a"].str.startswith("good")
    right = (table["outcome"] > 0.5).eq(table["battle_id"].map(a_wins))
    assert right.groupby(table["method"]).mean().min() == 1.0
    check = partial(result_of, QUANTITATIVE_OUTCOMES, "every_model_has_every_battle")
    assert check(table).passed
    assert not check(table.drop(index=3)).passed
    assert not check(pd.concat([table, table.tail(1)])).passed


def test_scores_of_either_order_favour_the_answer_shown_first(battles, judged, catalog, tmp_path):
    """A judge whose scores know what its words do not."""
    a_wins = judged["battle_id"].map(
        battles.set_index("battle_id")["completion_a"].str.startswith("good")
    )
    points = {
        f"{criterion}_{side}": np.where(a_wins == (side == "a"), 7.0, 5.0)
        for side in "ab"
        for criterion in CRITERIA
    }
    dull = judged.assign(answer="{}\n\nBoth are answers.", **points)
    vectors = embed(dull, NO_SCORES, catalog, tmp_path).value
    table = learn(quantitative_outcomes, battles, dull, NO_SCORES, vectors, catalog).value
    right = battles.set_index("battle_id")["completion_a"].str.startswith("good")
    assert (table["outcome"] > 0.5).eq(table["battle_id"].map(right)).all()


def test_reasons_of_plain_verdicts_are_learnt_from(battles, judged, scores, embeddings, catalog):
    wins = np.random.default_rng(4).integers(0, 3, len(judged)) / 2
    unscored = {name: np.nan for name in judged if name.rpartition("_")[0] in CRITERIA}
    plain = judged.assign(**unscored, recorded_outcome=wins)
    table = learn(quantitative_outcomes, battles, plain, scores, embeddings, catalog).value
    by_method = table.groupby("method").size()
    assert by_method.to_dict() == {"btl": 5 * N, "btl2": 5 * N}


def test_a_vote_changes_no_outcome_of_its_fold(battles, judged, scores, embeddings, catalog):
    settings = (judged, scores, embeddings, catalog)
    one = learn(quantitative_outcomes, battles, *settings).value
    of_ant = battles["model_a"].eq("ant") & battles["human_outcome"].notna()
    turned = battles.assign(
        human_outcome=battles["human_outcome"].where(~of_ant, 1 - battles["human_outcome"])
    )
    other = learn(quantitative_outcomes, turned, *settings).value
    held_out = one["held_out_model"].eq("ant")
    assert (one.loc[held_out, "outcome"] == other.loc[held_out, "outcome"]).all()
    assert (one.loc[~held_out, "outcome"] != other.loc[~held_out, "outcome"]).any()


def test_judges_stand_beside_their_base(battles, judged, scores, embeddings, catalog):
    result = learn(quantitative_judges, battles, judged, scores, embeddings, catalog)
    table = result.value.set_index(["method", "n_train", "metric"])
    assert set(table.index.get_level_values("n_train")) == {100}  # 192 votes, a third is tested
    accuracy = table.xs("accuracy", level="metric")
    assert (accuracy["value"] == 1.0).all()
    assert (accuracy["base"] < 0.7).all()
    assert result_of(QUANTITATIVE_JUDGES, "reasons_do_not_mislead", result.value).passed
    worse = result.value.assign(value=2 * result.value["score_only"])
    assert not result_of(QUANTITATIVE_JUDGES, "reasons_do_not_mislead", worse).passed


@pytest.mark.parametrize(
    ("vote", "told"), [(np.nan, "no votes are left"), (0.5, "outcomes are 0.5")]
)
def test_votes_without_use_are_a_note(battles, judged, scores, embeddings, catalog, vote, told):
    useless = battles.assign(human_outcome=vote)
    result = learn(quantitative_outcomes, useless, judged, scores, embeddings, catalog)
    assert result.value.empty
    assert told in result.metadata["note"]
    assert learn(quantitative_judges, useless, judged, scores, embeddings, catalog).value.empty


def test_a_judge_without_single_scores_has_one_method(battles, judged, catalog, tmp_path):
    vectors = embed(judged, NO_SCORES, catalog, tmp_path).value
    result = learn(quantitative_outcomes, battles, judged, NO_SCORES, vectors, catalog)
    assert set(result.value["method"]) == {"btl"}
    assert result.metadata["note"] == "btl2: no battle has the reasons of single scores"


def of_endpoint(folder: Path, model: str, more: str = "") -> Catalog:
    """A corpus whose reasons an endpoint embeds; its address is in the environment."""
    entry = f"local:\n  kind: openai\n  model: {model}\n  base_url: HERE\n{more}"
    return catalog_of(folder, corpora="c: {reader: arena, embeddings: local}", embeddings=entry)


def test_an_endpoint_is_asked_once_for_each_reason(judged, scores, minilm, tmp_path, monkeypatch):
    catalog = of_endpoint(tmp_path, minilm_server.NAME)
    with minilm_server.serving(minilm) as server:
        monkeypatch.setenv("HERE", server.url)
        first = embed(judged, scores, catalog, tmp_path)
        again = embed(judged, scores, catalog, tmp_path)
    assert sorted(server.texts) == sorted(set(server.texts))
    assert (first.metadata["n_made_now"], again.metadata["n_made_now"]) == (4, 0)
    assert first.metadata["tokens"] > 4
    one, other = (np.stack(result.value["embedding"]) for result in (first, again))
    assert one.shape == (4 * N, minilm_server.DIMENSION)
    assert (one == other).all()


def test_battles_without_a_reason_have_no_row(battles, judged, catalog, tmp_path):
    some = judged.assign(
        answer=judged["answer"].where(~judged["battle_id"].isin(["b3", "b7"]), "{}")
    )
    vectors = embed(some, NO_SCORES, catalog, tmp_path)
    assert vectors.metadata["n_without_rationale"] == 4
    result = learn(quantitative_outcomes, battles, some, NO_SCORES, vectors.value, catalog)
    assert set(battles["battle_id"]) - set(result.value["battle_id"]) == {"b3", "b7"}
    assert covered(vectors.value, some, NO_SCORES, catalog).passed
    assert not covered(vectors.value.head(N), some, NO_SCORES, catalog).passed


@pytest.mark.parametrize(("source", "share"), [("verdict", 0.0), ("score", 0.0), ("score", 0.9)])
def test_few_vectors_of_either_source_are_told(judged, scores, embeddings, catalog, source, share):
    assert covered(embeddings, judged, scores, catalog).passed
    own = embeddings["source"].eq(source)
    left = embeddings[~own | (own.cumsum() <= share * own.sum())]
    told = covered(left, judged, scores, catalog)
    assert not told.passed
    assert f"such as {source} {2 * N} (" in told.description
    if source == "score":  # nothing is missing where the judge explains no single score
        silent = scores.assign(answer="7")
        assert covered(embeddings[~own], judged, silent, catalog).passed


def test_no_vector_at_all_is_told_and_noted(judged, scores, tmp_path, monkeypatch):
    monkeypatch.setenv("HERE", "http://127.0.0.1:1/v1")  # nothing is sent
    catalog = of_endpoint(tmp_path, "m", "  max_characters: 3\n")
    result = embed(judged, scores, catalog, tmp_path)
    assert result.value.empty
    assert "none of the 1,280 reasons has a vector" in result.metadata["note"]
    assert "4 context_overflow" in result.metadata["note"]
    assert not covered(result.value, judged, scores, catalog).passed


@pytest.mark.parametrize("asset", [quantitative_outcomes, quantitative_judges])
def test_a_vote_off_the_scale_fails(battles, judged, scores, embeddings, catalog, asset):
    wrong = battles.assign(human_outcome=battles["human_outcome"].where(battles.index != 0, 2.0))
    with pytest.raises(ValueError, match=r"outcome is 2 in row 0; expected \[0, 1\] or NaN"):
        learn(asset, wrong, judged, scores, embeddings, catalog)
