"""Messages of the log that a run on the console shows; each begins with the name of its kind."""

PROGRESS = "judging: "
"""How far a judge is."""

CHANGES = "leaderboard: "
"""Changes of a board since the board before it."""

SHOWN = (PROGRESS, CHANGES)


def news_in(message: str) -> str:
    """Return a shown message without its kind; empty for any other message."""
    kind = next((one for one in SHOWN if message.startswith(one)), message)
    return message.removeprefix(kind)
