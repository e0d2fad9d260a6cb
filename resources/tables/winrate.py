"""Declared table of win rates."""

from judgeline.winrate import ModelWinRates
from resources.tables.rules import holds, within
from resources.tables.schema import Check, Table

ROUNDING = 1e-9

ADJUSTED_WIN_RATES = Table(
    "adjusted_win_rates",
    ModelWinRates,
    key=["model", "estimator"],
    checks=[
        Check(
            "win_rates_lie_in_their_intervals",
            "Win rates are shares, inside of their intervals, or their status says why there is "
            "none.",
            [
                *(
                    within(name, 0, 1, note=f"{name} is a share")
                    for name in (
                        "naive_win_rate",
                        "win_rate",
                        "win_rate_lower",
                        "win_rate_upper",
                        "human_win_rate",
                    )
                ),
                holds(
                    "explained",
                    lambda t: t["status"].eq("ok").eq(t["win_rate"].notna()),
                    "a row has a value or says why not",
                ),
                within(
                    "below",
                    -ROUNDING,
                    of=lambda t: t["win_rate"] - t["win_rate_lower"],
                    note="no interval begins above its estimate",
                ),
                within(
                    "above",
                    -ROUNDING,
                    of=lambda t: t["win_rate_upper"] - t["win_rate"],
                    note="no interval ends below its estimate",
                ),
            ],
            remedy="An interval beside its estimate comes from very few labels: label more "
            "battles. Otherwise remake adjusted_win_rates.",
            warns=True,
        )
    ],
)
