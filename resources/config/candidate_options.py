"""How new models of a corpus are placed, and which attack controls stand beside them."""

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from judgeline.elo import FEW_BATTLES
from resources.judges.budget import Budget
from resources.suggest import unknown_name

ControlName = Literal["null-model", "injected-instruction", "copy-of-opponent"]
CONTROLS: tuple[ControlName, ...] = get_args(ControlName)
_BOUNDS: dict[ControlName, float] = {
    "null-model": 0.0,
    "injected-instruction": 50.0,
    "copy-of-opponent": 50.0,
}


class ControlOptions(BaseModel):
    """An attack control: a contestant that no honest judge would rate high.

    Attributes
    ----------
    bound : float
        Elo points that its judged rating may lie above what it is held against: of the null
        model the lower quartile of the anchors' judged ratings (0 by default), of the injected
        instruction its carrier's judged rating (50), of the copy what ties with everybody it met
        would give (50).
    text_file : str or None
        Of the null model: a UTF-8 file whose text is its constant answer, relative to the
        checkout or absolute; None for the text that comes with the program.
    carrier : str or None
        Of the injected instruction: the anchor whose answers it copies; None for the one at the
        lower quartile of votes won when it is first switched on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    bound: float
    text_file: str | None = Field(default=None, min_length=1)
    carrier: str | None = Field(default=None, min_length=1)


_OWN_KEYS = {"text_file": "null-model", "carrier": "injected-instruction"}


class CandidateOptions(BaseModel):
    """How new models are placed among the models that people rated.

    Attributes
    ----------
    half_width : float
        Half-width of the interval that is aimed at, in Elo points.
    max_battles : int
        Most battles of a candidate, whatever the half-width would take; at least
        `judgeline.elo.FEW_BATTLES`, below which a standard error is a guess.
    budget : list of str
        Cap on what each judge is asked about them in one run, whoever starts it, written as for
        ``--budget``; where both cap a run the smaller holds.
    controls : dict of str to ControlOptions
        Attack controls that are switched on. In the file a list of names is enough.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    half_width: float = Field(default=60.0, gt=0)
    max_battles: int = Field(default=200, ge=FEW_BATTLES)
    budget: list[str] = Field(default_factory=lambda: ["2000calls"], min_length=1)
    controls: dict[ControlName, ControlOptions] = Field(default_factory=dict)

    @field_validator("budget", mode="before")
    @classmethod
    def _is_a_budget(cls, budget: Any) -> Any:
        texts = budget.split() if isinstance(budget, str) else budget
        if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
            Budget.parse(texts)
        return texts

    @field_validator("controls", mode="before")
    @classmethod
    def _named(cls, controls: Any) -> Any:
        if isinstance(controls, list) and all(isinstance(name, str) for name in controls):
            controls = dict.fromkeys(controls)
        if not isinstance(controls, dict):
            return controls
        return {name: _with_bound(name, given) for name, given in controls.items()}


def _with_bound(name: Any, given: Any) -> Any:
    """Return the options of a control with its own default bound; refuse those of another."""
    if name not in CONTROLS:
        where = "resources/config/candidate_options.py"
        raise ValueError(unknown_name("control", str(name), CONTROLS, where))
    if given is not None and not isinstance(given, dict):
        return given
    for key, owner in _OWN_KEYS.items():
        if given and key in given and name != owner:
            raise ValueError(f"{key!r} is an option of {owner}, not of {name}")
    return {"bound": _BOUNDS[name], **(given or {})}
