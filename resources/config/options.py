"""Options of a corpus that belong to one system: its panel, gate, watch, refresh and candidates."""

from collections.abc import Collection
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from judgeline.elo import FEW_BATTLES
from judgeline.judges.budget import Budget
from judgeline.judges.options import Options
from judgeline.reliability.drift import LEAST_BATTLES
from judgeline.reliability.gate import CRITERIA as GATE_CRITERIA
from judgeline.reliability.gate import WITHHOLD
from judgeline.suggest import near_names

ControlName = Literal["null-model", "injected-instruction"]
CONTROLS: tuple[ControlName, ...] = get_args(ControlName)
_RETIRED = "copy-of-opponent"
_BOUNDS = {"null-model": 0.0, "injected-instruction": 50.0}
_CONTROL_OF_KEY = {"text_file": "null-model", "carrier": "injected-instruction"}


def _budget_texts(budget: Any) -> Any:
    texts = budget.split() if isinstance(budget, str) else budget
    if isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts):
        Budget.parse(list(texts))
        return list(texts)
    return texts


Caps = Annotated[list[str], BeforeValidator(_budget_texts), Field(min_length=1)]
"""Cap on the calls to each judge, as for ``--budget``; an empty list would cap nothing."""


def known(kind: str, names: Collection[str]) -> AfterValidator:
    """Return a validator of names; an unknown name is refused with the nearest known ones."""

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"no {kind} has this name; {near_names(name, names)}")
        return name

    return AfterValidator(check)


class PanelOptions(Options):
    """Battles that a judge judges several times; the first run is already there and free."""

    battles: int = Field(default=50, ge=0)
    runs: int = Field(default=3, ge=2)


class DriftOptions(Options):
    """Battles that a judge judges again, epoch after epoch; each is two calls an epoch."""

    battles: int = Field(default=100, ge=LEAST_BATTLES)
    budget: Caps = Field(default=["2000calls"])


class RefreshOptions(Options):
    """The weekly schedule of a corpus; without this block it is left alone."""

    extend_by: int = Field(default=0, ge=0)
    budget: Caps = Field(default=["2000calls"])


def _limit(name: str, **bounds: Any) -> Any:
    return Field(default=GATE_CRITERIA[name].threshold, **bounds)


_Criterion = Annotated[str, known("criterion", GATE_CRITERIA)]


class GateOptions(Options):
    """Thresholds of the judge gate by criterion, None for none; see `judgeline.reliability`."""

    withhold: list[_Criterion] = Field(default=list(WITHHOLD))
    icc_average: float | None = _limit("icc_average", le=1)
    single_run_reliability: float | None = _limit("single_run_reliability", le=1)
    skill: float | None = _limit("skill", le=1)
    skill_lower: float | None = _limit("skill_lower", le=1)
    kappa: float | None = _limit("kappa", ge=-1, le=1)
    run_kappa: float | None = _limit("run_kappa", ge=-1, le=1)
    parse_rate: float | None = _limit("parse_rate", ge=0, le=1)
    position_flip_rate: float | None = _limit("position_flip_rate", ge=0, le=1)
    position_effect: float | None = _limit("position_effect", ge=0, le=9)  # rubric points
    conflict_ratio: float | None = _limit("conflict_ratio", ge=0, le=1)
    non_transitivity_ratio: float | None = _limit("non_transitivity_ratio", ge=0, le=1)

    @property
    def thresholds(self) -> dict[str, float | None]:
        """Threshold by criterion."""
        return {name: getattr(self, name) for name in GATE_CRITERIA}


class ControlOptions(Options):
    """An attack control: a contestant that no honest judge would rate high.

    `bound` is how many Elo points its judged rating may lie above the anchors' lower quartile
    (null model) or above its carrier's (injected instruction). `text_file` is the null model's
    answer in UTF-8, `carrier` the anchor that the injected instruction copies.
    """

    bound: float
    text_file: str | None = Field(default=None, min_length=1)
    carrier: str | None = Field(default=None, min_length=1)


def _named(controls: Any) -> Any:
    """Return controls with their default bounds; refuse unknown ones, and options of another."""
    if isinstance(controls, list) and all(isinstance(name, str) for name in controls):
        controls = dict.fromkeys(controls)
    if not isinstance(controls, dict):
        return controls
    made = {}
    for name, given in controls.items():
        if name == _RETIRED:
            raise ValueError(f"the control {name!r} is gone; remove the key {name}")
        if name not in CONTROLS:
            raise ValueError(f"no control has the name {name!r}; {near_names(str(name), CONTROLS)}")
        own = {} if given is None else given
        for key, owner in _CONTROL_OF_KEY.items():
            if isinstance(own, dict) and key in own and name != owner:
                raise ValueError(f"{key!r} is an option of {owner}, not of {name}")
        made[name] = {"bound": _BOUNDS[name], **own} if isinstance(own, dict) else own
    return made


class CandidateOptions(Options):
    """Options for placing new models among those that people rated."""

    half_width: float = Field(default=60.0, gt=0)  # Elo points
    max_battles: int = Field(default=200, ge=FEW_BATTLES)  # with fewer a standard error is a guess
    budget: Caps = Field(default=["2000calls"])
    controls: Annotated[dict[ControlName, ControlOptions], BeforeValidator(_named)] = Field(
        default={}
    )
