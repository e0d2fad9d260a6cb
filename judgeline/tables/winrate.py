"""Declared table of win rates."""

from judgeline.tables.rules import holds, within
from judgeline.tables.schema import table, warns
from judgeline.winrate import ModelWinRates

ROUNDING = 1e-9
_RATES = ("naive_win_rate", "win_rate", "win_rate_lower", "win_rate_upper", "human_win_rate")

ADJUSTED_WIN_RATES = table(
    "adjusted_win_rates",
    ModelWinRates,
    ["model", "estimator"],
    warns(
        "win_rates_lie_in_their_intervals",
        "Win rates are shares within their intervals, or a status says why there is none.",
        "An interval beside its estimate comes from very few labels: label more "
        "battles. Otherwise remake adjusted_win_rates.",
        *(within(name, 0, 1) for name in _RATES),
        holds(
            "explained",
            lambda t: t["status"].eq("ok").eq(t["win_rate"].notna()),
            "a row has a value or says why not",
        ),
        holds(
            "inside",
            lambda t: (
                ~t["win_rate"].lt(t["win_rate_lower"] - ROUNDING)
                & ~t["win_rate"].gt(t["win_rate_upper"] + ROUNDING)
            ),
            "an estimate lies in its interval",
        ),
    ),
)
