"""PandaLM's test set: votes of three people a pair, and verdicts of a judge in a file beside it.

WeOpenML/PandaLM, `data/testset-v1.json`; 1 and 2 are the better response, 0 a tie.
"""

from contextlib import suppress
from pathlib import Path

import pandas as pd

from judgeline.io.formats import file_columns, read_columns
from judgeline.io.layout import VOTES, Given, Layout
from judgeline.io.outcome_codes import code_of

_CODES = {"1": 1.0, "2": 0.0, "0": 0.5, "tie": 0.5}
_PEOPLE = "idx cmp_key annotator1 annotator2 annotator3"
_JUDGE = "idx gpt_result"


def _share(values: pd.Series) -> pd.Series:
    """Return A's share of the win by code; null of a verdict that could not be read."""
    return values.map(lambda value: _CODES.get(code_of(value).casefold()))


def _votes(table: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of three people; ValueError of a code that is none."""
    given = table[[f"annotator{n}" for n in (1, 2, 3)]]
    votes = given.apply(_share)
    if len(odd := given.to_numpy()[(votes.isna() & given.notna()).to_numpy()]):
        raise ValueError(f"an annotator's choice is {odd[0]!r}; expected 1, 2 or 0 for a tie")
    return votes


def _pairs(table: pd.DataFrame) -> pd.DataFrame:
    """Return both models of each pair, which its key joins by the last underscore, and votes."""
    sides = table["cmp_key"].str.rsplit("_", n=1, expand=True)
    votes = _votes(table)
    ours = {"human_outcome": votes.mean(axis=1), "n_votes": votes.notna().sum(axis=1)}
    named = table.assign(model_a=sides[0], model_b=sides[1], battle_id=table["idx"].astype(str))
    return named.assign(**ours)[["battle_id", "model_a", "model_b", *ours]]


def _people(given: Given) -> pd.DataFrame:
    return _pairs(given.read(_PEOPLE.split(), ["cmp_key"]))


def _judge(given: Given) -> pd.DataFrame:
    table = given.read(_JUDGE.split(), [])
    verdicts = dict(zip(table["idx"].astype(str), _share(table["gpt_result"]), strict=True))
    beside = sorted(given.files[0].parent.glob("*.json")) if given.files else []
    sets = [found for found in map(_test_set, beside) if found is not None]
    if len(sets) != 1:
        raise ValueError(
            f"{given.path} holds verdicts by number alone, and {len(sets)} test sets lie beside "
            "it: put the one with cmp_key there"
        )
    battles = _pairs(sets[0])
    return battles.assign(judge="gpt", judge_outcome=battles["battle_id"].map(verdicts))


def _test_set(path: Path) -> pd.DataFrame | None:
    with suppress(ValueError):  # another file, perhaps not even JSON
        if {*_PEOPLE.split()} <= {*file_columns(path)}:
            return read_columns(path, _PEOPLE.split(), ["cmp_key"])
    return None


PANDALM_PEOPLE = Layout("pandalm", (_PEOPLE,), advice=VOTES, battles=_people)
PANDALM = Layout("pandalm-judge", (_JUDGE,), battles=_judge)
