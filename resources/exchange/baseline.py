"""The baseline of Arena-Hard files as a command line names it."""

from collections.abc import Sequence

from resources.config.corpora import ArenaHardOptions


def arena_hard_options(style: str, named: Sequence[str], first_in: int) -> ArenaHardOptions | None:
    """Return the options that an Arena-Hard file needs, None where no baseline is named.

    `named` is one name, or ``CATEGORY=NAME`` for each category.
    """
    if not named:
        return None
    if style != "arena-hard":
        raise ValueError(f"--baseline belongs to the format arena-hard, not {style}; remove it")
    return ArenaHardOptions.model_validate(
        {"baseline": _baseline(named), "baseline_first_in": first_in}
    )


def _baseline(named: Sequence[str]) -> str | dict[str, str]:
    if len(named) == 1 and "=" not in named[0]:
        return named[0]
    pairs = {name: name.partition("=")[::2] for name in named}
    for name, (category, model) in pairs.items():
        if not category or not model:
            raise ValueError(
                f"--baseline {name!r} is one of several and names no category; write "
                "CATEGORY=NAME for each (a name that holds '=' can stand in config/corpora.yaml)"
            )
    return dict(pairs.values())
