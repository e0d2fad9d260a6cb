"""Whether a budget covers what a plan expects."""

from collections.abc import Sequence

from resources.judges.budget import Budget
from resources.judges.judge_plan import JudgePlan


def require_covered(plan: Sequence[JudgePlan], cap: Budget) -> None:
    """Check that a budget covers what a plan expects; what it does not foresee, the cap stops.

    Raises
    ------
    ValueError
        Otherwise, with the number and the remedy; or if a judge with calls has no price in the
        currency of the budget.
    """
    priced = [step for step in plan if step.tokens is not None and step.n_calls]
    expected = {"calls": float(sum(step.n_calls for step in plan))}
    expected["tokens"] = float(sum(step.n_tokens for step in plan))
    if cap.money is not None:
        for step in priced:
            if step.money is None or step.currency != cap.currency:
                raise ValueError(
                    f"the budget is {cap}, but judge {step.judge!r} has no price in "
                    f"{cap.currency}; add 'price_per_million' to its entry in config/judges.yaml"
                )
        expected["money"] = sum(step.money or 0.0 for step in priced)
    for unit, value in expected.items():
        limit = getattr(cap, unit)
        if limit is not None and value > limit:
            what, digits = (cap.currency, 2) if unit == "money" else (unit, 0)
            raise ValueError(
                f"about {value:,.{digits}f} {what} would be needed, --budget allows "
                f"{limit:,.{digits}f}; name fewer judges, lower sample_size of the corpus, or "
                "raise the budget"
            )
