"""What a corpus asks of its judges before their ratings are shown."""

import difflib

from pydantic import BaseModel, ConfigDict, Field, field_validator

from judgeline.reliability import CRITERIA, WITHHOLD


class PanelOptions(BaseModel):
    """Battles that a judge judges several times.

    Attributes
    ----------
    battles : int
        How many of the sampled battles; 0 for none.
    runs : int
        How often each is judged. The first run costs nothing: its verdicts are there already.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    battles: int = Field(default=50, ge=0)
    runs: int = Field(default=3, ge=2)


def _limit(name: str) -> float | None:
    return CRITERIA[name].threshold


class GateOptions(BaseModel):
    """Thresholds of the judge gate by criterion, None for none; see `judgeline.reliability`.

    Attributes
    ----------
    withhold : list of str
        Criteria whose failure withholds the ratings of a judge; the others inform.
    icc_average, single_run_reliability, kappa, run_kappa, parse_rate : float or None
        A judge passes from here on.
    position_flip_rate, conflict_ratio, non_transitivity_ratio : float or None
        A judge passes up to here, as a share.
    position_effect : float or None
        A judge passes up to here, in rubric points.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    withhold: list[str] = Field(default_factory=lambda: list(WITHHOLD))
    icc_average: float | None = Field(default=_limit("icc_average"), le=1)
    single_run_reliability: float | None = Field(default=_limit("single_run_reliability"), le=1)
    kappa: float | None = Field(default=_limit("kappa"), ge=-1, le=1)
    run_kappa: float | None = Field(default=_limit("run_kappa"), ge=-1, le=1)
    parse_rate: float | None = Field(default=_limit("parse_rate"), ge=0, le=1)
    position_flip_rate: float | None = Field(default=_limit("position_flip_rate"), ge=0, le=1)
    position_effect: float | None = Field(default=_limit("position_effect"), ge=0, le=9)
    conflict_ratio: float | None = Field(default=_limit("conflict_ratio"), ge=0, le=1)
    non_transitivity_ratio: float | None = Field(
        default=_limit("non_transitivity_ratio"), ge=0, le=1
    )

    @field_validator("withhold")
    @classmethod
    def _are_criteria(cls, withhold: list[str]) -> list[str]:
        for name in withhold:
            if name not in CRITERIA:
                near = difflib.get_close_matches(name, CRITERIA, n=1)
                hint = f"did you mean {near[0]!r}? " if near else ""
                raise ValueError(f"{hint}the criteria are {', '.join(CRITERIA)}")
        return withhold

    @property
    def thresholds(self) -> dict[str, float | None]:
        """Threshold by criterion."""
        return {name: getattr(self, name) for name in CRITERIA}
