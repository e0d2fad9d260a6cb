from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from answering import annotate

from judgeline.io import score_battles
from judgeline.judges.annotation import recorded_marks
from judgeline.paths import ROOT
from judgeline.tables.corpus import VERDICT_DTYPES
from judgeline.verdict.outcomes import CRITERIA
from resources.arena.simulation import read_arena
from resources.config.corpora import CorpusDefinition
from resources.config.judges import load_judges
from resources.opening import open_judge

JUDGES = load_judges(ROOT / "config" / "judges.yaml")
SMALL = CorpusDefinition(
    slug="small",
    display_name="Small (simulated)",
    reader="arena",
    seed=4,
    arena={"n_prompts": 40, "n_voted": 6, "n_new": 1, "n_battles": 300},
)


@pytest.fixture(autouse=True)
def shipped_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGELINE_CONFIG", raising=False)


@pytest.mark.parametrize(("slug", "least", "most"), [("careful", 0.7, 0.9), ("hasty", 0.6, 0.85)])
def test_simulated_judges_agree_with_humans_as_far_as_people_do(slug, least, most):
    battles = read_arena(SMALL).battles
    verdicts = annotate(open_judge(JUDGES[slug], SMALL), battles, slug=slug)
    assert verdicts["status"].eq("ok").mean() > 0.95
    scored = score_battles(battles, verdicts)
    decided = scored[scored["human_outcome"].isin([0, 1]) & scored["judge_outcome"].isin([0, 1])]
    agreement = decided["human_outcome"].eq(decided["judge_outcome"]).mean()
    assert least < agreement < most


def test_a_simulated_judge_refuses_other_corpora() -> None:
    other: Any = SimpleNamespace(slug="lmarena", reader="lmarena-100k", seed=0, arena={})
    with pytest.raises(ValueError, match=r"'careful' is simulated.*'lmarena'"):
        open_judge(JUDGES["careful"], other)


def test_a_recorded_judge_cannot_be_asked() -> None:
    changed = JUDGES["careful"].model_copy(update={"kind": "recorded", "builtin": None})
    with pytest.raises(ValueError, match="come with the corpus"):
        open_judge(changed, SMALL)


def published(*rows: tuple[str, str]) -> pd.DataFrame:
    table = pd.DataFrame(
        [{**dict.fromkeys(VERDICT_DTYPES), "battle_id": b, "judge": j} for b, j in rows],
        columns=list(VERDICT_DTYPES),
    )
    return table.assign(replicate=0, status="ok", order="mean", identity="i").astype(VERDICT_DTYPES)


def test_recorded_verdicts_are_those_of_the_judge_on_the_battles() -> None:
    verdicts = published(("b1", "r"), ("b2", "r"), ("b1", "other"), ("b3", "r"))
    battles = pd.DataFrame({"battle_id": ["b3", "b1"]})
    kept = recorded_marks(verdicts, battles, "r")
    assert kept["battle_id"].tolist() == ["b1", "b3"]
    assert kept["judge"].eq("r").all()
    assert kept.dtypes.astype(str).to_dict() == VERDICT_DTYPES


@pytest.mark.parametrize(
    ("verdicts", "there"), [(published(("b1", "r")), "it has: r"), (published(), "none at all")]
)
def test_a_judge_that_left_no_verdicts_is_named(verdicts: pd.DataFrame, there: str) -> None:
    with pytest.raises(ValueError, match=rf"judge 'x'.*{there}"):
        recorded_marks(verdicts, pd.DataFrame({"battle_id": ["b1"]}), "x")


def test_criteria_are_those_of_the_table() -> None:
    assert set(CRITERIA) == {name[:-2] for name in VERDICT_DTYPES if name.endswith("_a")}
