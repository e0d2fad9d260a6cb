"""What works by itself and what it may spend are all in the page that says so."""

import re

from assets.judging import budgets
from pipelines.sensors.automation import SCHEDULES, SENSORS
from resources.config.corpora import CorpusDefinition
from resources.config.options import CandidateOptions, DriftOptions, RefreshOptions
from resources.config.paths import ROOT

PAGE = (ROOT / "docs" / "judges-and-schedules.md").read_text(encoding="utf-8")
BY_ITSELF = "What runs by itself, and what never does"
ASKING = (
    "verdicts",
    "score_verdicts",
    "choice_verdicts",
    "reliability_panel",
    "rationale_embeddings",
    "candidate_verdicts",
    "drift_answers",
)
"""As tests of conditions list them."""


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
