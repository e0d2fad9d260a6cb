"""How a corpus is kept up to date by schedule."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from resources.judges.budget import Budget


class RefreshOptions(BaseModel):
    """What the weekly schedule does with a corpus; without this block it leaves it alone.

    Attributes
    ----------
    extend_by : int
        Further battles to choose each time, beyond those chosen already; 0 for none.
    budget : tuple of str
        Cap on what each judge is asked each time, as for ``--budget``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    extend_by: int = Field(default=0, ge=0)
    budget: tuple[str, ...] = ("2000calls",)

    @field_validator("budget", mode="before")
    @classmethod
    def _listed(cls, budget: Any) -> Any:
        return tuple(budget.split()) if isinstance(budget, str) else budget

    @field_validator("budget")
    @classmethod
    def _is_a_cap(cls, budget: tuple[str, ...]) -> tuple[str, ...]:
        if not budget:
            raise ValueError("it caps nothing; write such as 2000calls or 5USD")
        Budget.parse(list(budget))
        return budget
