"""Standard errors of ratings: a loop of refits, a closed form, and the truth."""

import math
from typing import Any

import numpy as np
import pytest
from arenas import dense_battles, name, play, random_pairs, stress_battles
from likeness import by_model_and_method, rate
from twins import ELO_PER_LOGIT, Battle, all_models, human_placement, judge_placement, place

from judgeline.elo import RatingSettings, keyed_rng
from judgeline.elo.resampling import _OwnFit
from judgeline.elo.strengths import place_models

N_DRAWS = 600
"""Resamples of either side: their standard deviations differ by some 4 % by chance."""


def std_errors(battles: list[Battle], n_resamples: int, **changes: Any) -> dict[tuple, float]:
    settings = RatingSettings(n_resamples=n_resamples, **{"smoothing_levels": (), **changes})
    rows = by_model_and_method(rate(battles, settings))
    return {key: row["std_error"] for key, row in rows.items()}


def sd_error(ratings: np.ndarray) -> float:
    """Relative Monte-Carlo error of a standard deviation, from the fourth moment."""
    z = (ratings - ratings.mean()) / ratings.std()
    return math.sqrt((np.mean(z**4) - 1) / len(z)) / 2


@pytest.mark.parametrize("n_battles", [60, 400], ids=["small, far from normal", "large"])
def test_resampling_matches_the_loop_of_refits(n_battles: int) -> None:
    """Both sides draw at random: agreement within five of their joint Monte-Carlo errors."""
    rng = np.random.default_rng(31)
    battles = play(rng, random_pairs(rng, 6, n_battles), rng.normal(0, 1, 6))
    fast = std_errors(battles, N_DRAWS)
    for model in all_models(battles)[:2]:
        for method in ("human", "hard", "soft"):
            if method == "human":
                placed = human_placement(battles, model, 0.01)
            else:
                placed = judge_placement(battles, model, method, 0.01)
            ratings = placed.bootstrap(np.random.default_rng(7), N_DRAWS)
            tolerance = 5 * sd_error(ratings) * math.sqrt(2)
            assert fast[model, method] == pytest.approx(ratings.std(ddof=1), rel=tolerance)


def test_a_ruler_stretches_the_bootstrap_error_too_and_without_resamples_there_is_none() -> None:
    found = rate(dense_battles(33), RatingSettings(n_resamples=20))
    base, ruled = (found.take(found.method == method) for method in ("soft", "soft-rescaled"))
    stretch = ruled.std_error_analytic / base.std_error_analytic
    assert ruled.std_error == pytest.approx(stretch * base.std_error, rel=1e-9)
    assert np.isnan(rate(dense_battles(33)).std_error).all()


def test_every_part_of_a_key_counts_and_so_does_its_place() -> None:
    keys = [
        (0,), (1,), (0, ""), (0, "a"), (1, "a"), (0, "a", "b"), (0, "b", "a"), (0, "ab"),
        (0, "a", ""), (0, "", "a"),
    ]  # fmt: skip
    draws = [tuple(keyed_rng(*key).integers(2**62, size=4).tolist()) for key in keys]
    assert len(set(draws)) == len(keys)
    assert draws[3] == tuple(keyed_rng(0, "a").integers(2**62, size=4).tolist())
    first, second = (keyed_rng(0, "arena", name).standard_normal(20_000) for name in "ab")
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(20_000)
    with pytest.raises(ValueError, match="-1"):
        keyed_rng(-1, "arena")


def test_seed_corpus_and_judge_key_the_streams() -> None:
    battles = dense_battles(35)
    base = std_errors(battles, 20, stream=("corpus", "judge"))
    assert base == std_errors(battles, 20, stream=("corpus", "judge"))
    for changed in (
        {"seed": 1, "stream": ("corpus", "judge")},
        {"stream": ("corpus", "other")},
        {"stream": ("other", "judge")},
    ):
        other = std_errors(battles, 20, **changed)
        assert all(other[key] != base[key] for key in base)
        assert all(0.3 < other[key] / base[key] < 3 for key in base)


@pytest.mark.parametrize("n_battles", [3, 60, 2000], ids=["some far away", "small", "large"])
@pytest.mark.parametrize("clustered", [False, True])
def test_resamples_are_placed_where_each_alone_would_be(n_battles: int, clustered: bool) -> None:
    rng = np.random.default_rng(n_battles)
    anchors, opponent = rng.normal(0, 1, (2, 6)), rng.integers(0, 6, n_battles)
    share = np.stack([rng.integers(0, 3, n_battles) / 2] * 2).T * [1, 0.5] + [0, 0.25]
    cluster = opponent // 2 if clustered else None
    fit = _OwnFit.of(np.zeros(2), anchors, opponent, share, cluster)
    won, met = fit.wins.T @ fit.copies, fit.met(fit.copies[None].astype(float))
    assert met[0].tolist() == np.bincount(opponent, minlength=6).tolist()
    assert won == pytest.approx(share.sum(axis=0))
    own = zip(won, anchors, strict=True)
    fit = fit._replace(strengths=np.array([place_models([w], met, a)[0] for w, a in own]))
    counts = fit.drawn(200, np.random.default_rng(7))
    assert (counts.sum(axis=1) == fit.copies.sum()).all()
    wins, met = (counts @ fit.wins).T, fit.met(counts)
    alone = [place_models(w, met, a) for w, a in zip(wins, anchors, strict=True)]
    np.testing.assert_allclose(fit._placed(wins, met, 0.01), alone, rtol=0, atol=1e-11)
    errors = fit.bootstrap_errors(RatingSettings(n_resamples=200), np.random.default_rng(7))
    spread = np.std(alone, axis=1, ddof=1) if fit.copies.sum() > 1 else np.full(2, math.nan)
    assert errors == pytest.approx(spread, rel=1e-9, nan_ok=True)


def test_models_do_not_share_their_noise() -> None:
    """Two models with the same battles against the same anchors draw different resamples."""
    battles = dense_battles(37)
    twin = [
        Battle(*("twin" if m == name(0) else m for m in b.models()), b.human, b.judge, b.score)
        for b in battles
        if name(0) in b.models()
    ]
    rows = by_model_and_method(rate([*battles, *twin], RatingSettings(n_resamples=20)))
    first, second = rows[name(0), "hard"], rows["twin", "hard"]
    assert first["std_error_analytic"] == pytest.approx(second["std_error_analytic"], rel=1e-6)
    assert first["std_error"] != pytest.approx(second["std_error"], rel=1e-3)


# ------------------------------------------------------------------ clusters


def test_cluster_errors_match_a_loop_that_draws_clusters() -> None:
    rng = np.random.default_rng(39)
    battles = play(rng, random_pairs(rng, 5, 300), rng.normal(0, 1, 5))
    cluster = np.array([f"q{k}" for k in rng.integers(0, 60, len(battles))])
    rows = by_model_and_method(
        rate(battles, RatingSettings(n_resamples=N_DRAWS, smoothing_levels=()), cluster=cluster)
    )
    model = name(2)
    placed = judge_placement(battles, model, "hard", 0.01)
    own = [k for k, battle in enumerate(battles) if model in battle.models()]
    members = [[k for k, row in enumerate(own) if cluster[row] == c] for c in set(cluster[own])]
    ratings = []
    for _ in range(N_DRAWS):
        drawn = rng.integers(len(members), size=len(members))
        take = np.concatenate([members[k] for k in drawn])
        ratings.append(ELO_PER_LOGIT * place(placed.opponent[take], placed.y[take], placed.l2))
    spread = np.array(ratings)
    row = rows[model, "hard"]
    assert row["std_error"] == pytest.approx(spread.std(ddof=1), rel=7 * sd_error(spread))
    assert row["std_error_analytic"] == pytest.approx(spread.std(ddof=1), rel=0.12)


def test_a_cluster_per_battle_is_no_clustering_and_one_too_few_is_refused() -> None:
    battles = stress_battles("hub")
    plain, alone = rate(battles), rate(battles, cluster=np.arange(len(battles)))
    error = pytest.approx(plain.std_error_analytic, abs=1e-4, nan_ok=True)
    assert alone.std_error_analytic == error
    with pytest.raises(ValueError, match=r"the shape of cluster is \(7,\)"):
        rate(battles, cluster=np.arange(7))
    with pytest.raises(ValueError, match="cluster is None in row 1"):
        rate(battles[:2], cluster=["q", None])


# ------------------------------------------------------------------ the truth


def test_a_single_battle_has_no_error() -> None:
    rows = by_model_and_method(
        rate(stress_battles("one weak link"), RatingSettings(n_resamples=20))
    )
    row = rows[name(23), "hard"]
    assert (row["n_battles"], math.isfinite(row["rating"])) == (1, True)
    assert math.isnan(row["std_error"])
    assert math.isnan(row["std_error_analytic"])
