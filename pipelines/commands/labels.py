"""What to label next, as the label plan of a judge on a corpus says it."""

import pandas as pd

from resources.config.corpora import load_corpora
from resources.config.judges import load_judges
from resources.suggest import unknown_name
from resources.tables.store import open_store

Row = tuple[str, str, str]


def plan_lines(corpus: str, judge: str) -> list[Row]:
    """Return per corpus or model and way of choosing battles what to label, in words.

    Parameters
    ----------
    corpus, judge : str
        Configured slugs.

    Returns
    -------
    list of tuple
        Of whom, by what battles are chosen, and the plan. Empty where nobody voted.

    Raises
    ------
    ValueError
        If a name is not configured, or the plan was never made.
    """
    for kind, slug, known in (
        ("corpus", corpus, load_corpora()),
        ("judge", judge, load_judges()),
    ):
        if slug not in known:
            file = {"corpus": "corpora", "judge": "judges"}[kind]
            raise ValueError(unknown_name(kind, slug, known, f"config/{file}.yaml"))
    table = open_store().stored("label_plan", corpus, judge)
    if table is None:
        raise ValueError(
            f"no label plan of judge {judge!r} on corpus {corpus!r}; make it first: "
            f"judgeline run --corpus {corpus} --judge {judge}"
        )
    return [_line(row) for _, row in table.iterrows()]


def _line(row: pd.Series) -> Row:
    subject = "the corpus" if row["grouping"] == "all" else str(row["level"])
    return subject, str(row["chosen_by"]), str(row["plan"])
