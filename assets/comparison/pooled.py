"""The judges of a corpus as one judge: a board of their pooled ratings, and its row of figures."""

from dataclasses import fields

import dagster as dg
import pandas as pd

from assets.conditions import COMPARES_JUDGES, table_asset
from assets.engine import as_metadata, settings_of
from assets.partitions import by_judge
from assets.provenance import UP_TO_LEADERBOARD, settled_judges
from assets.settings import corpus_of
from judgeline.io import common_battles
from judgeline.rating_options import RatingOptions
from judgeline.steps.candidates import score_candidates
from judgeline.steps.comparison import candidate_tables, pooled_board
from judgeline.steps.reliability import gate_of, weakness, withheld_judges
from resources.config.catalog import Catalog

_READ = tuple(
    setting.name
    for setting in fields(RatingOptions)
    if setting.name not in ("method", "win_rate_half_width")  # pooled ratings have one method
)


@table_asset("4", COMPARES_JUDGES, columns={"leaderboard": ("model", "rating", "flags")})
def pooled_leaderboard(
    context: dg.AssetExecutionContext,
    leaderboard: dict[str, pd.DataFrame],
    scored_battles: dict[str, pd.DataFrame],
    judge_gate: dict[str, pd.DataFrame],
    candidate_battles: pd.DataFrame | None,
    candidate_verdicts: dict[str, pd.DataFrame],
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's rating by all judges together, with rank and interval, on their common battles.

    Judges whose ratings are withheld, whose last run was stopped, whose repeated runs have an
    ICC(3,k) below the gate's limit or who scored too few battles are left out; so published
    ("strong judges"). Empty where fewer than two remain. A candidate that all of them have rated is
    placed; another one has a flag in the place of a rating.
    """
    corpus_of(context, catalog, *(f"rating.{name}" for name in _READ))
    settings = settings_of(catalog, context.partition_key, "", _READ)
    boards, scored = by_judge(leaderboard), by_judge(scored_battles)
    judges, stopped = settled_judges(
        context.instance, context.partition_key, {*boards} & {*scored}, assets=UP_TO_LEADERBOARD
    )
    withheld = withheld_judges({judge: boards[judge] for judge in judges})
    gates = by_judge(judge_gate)
    weak = {judge: weakness(gate_of(gates[judge])) for judge in judges if judge in gates}
    out = {*withheld, *(judge for judge, reason in weak.items() if reason)}
    common = common_battles({judge: scored[judge] for judge in judges if judge not in out})
    verdicts = by_judge(candidate_verdicts)
    scores = {one: score_candidates(candidate_battles, verdicts.get(one)) for one in common}
    candidates = candidate_tables({judge: boards[judge] for judge in common}, scores)
    table, said = pooled_board(common, settings, candidates)
    return dg.MaterializeResult(
        value=table,
        metadata={
            **{name: as_metadata(note) for name, note in said.items()},
            "judges": sorted(common),
            "left_out": sorted(stopped),
            "too_few_battles": sorted({*judges} - out - {*common}),
            **{f"withheld {judge}": reason for judge, reason in withheld.items()},
            **{f"weak {judge}": reason for judge, reason in weak.items() if reason},
        },
    )
