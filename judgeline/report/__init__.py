"""The report: one HTML file that needs nothing else, a picture of it, and text made safe to show.

The report of a corpus and the report of `judgeline rank` are the same page with other tables.
"""

from judgeline.report.battles import (
    MOST_PER_SIDE,
    Evidence,
    Lead,
    Reading,
    evidence_of,
    lead_text,
    strongest,
)
from judgeline.report.changes import changes_text
from judgeline.report.companions import COMPANIONS, COST_COLUMNS
from judgeline.report.drawing import Chart
from judgeline.report.escaping import (
    in_csv,
    in_json,
    in_markdown,
    inert,
    json_value,
    shortened,
    with_texts,
)
from judgeline.report.evidence import beyond_lines, evidence_lines
from judgeline.report.figures import Illustration, Picture, interval_figure, picture
from judgeline.report.judge_tables import JudgeTables
from judgeline.report.page import write_report
from judgeline.report.voting_page import write_voting_page
from judgeline.report.wording import rating_text, unvoted_text

__all__ = [
    "COMPANIONS",
    "COST_COLUMNS",
    "MOST_PER_SIDE",
    "Chart",
    "Evidence",
    "Illustration",
    "JudgeTables",
    "Lead",
    "Picture",
    "Reading",
    "beyond_lines",
    "changes_text",
    "evidence_lines",
    "evidence_of",
    "in_csv",
    "in_json",
    "in_markdown",
    "inert",
    "interval_figure",
    "json_value",
    "lead_text",
    "picture",
    "rating_text",
    "shortened",
    "strongest",
    "unvoted_text",
    "with_texts",
    "write_report",
    "write_voting_page",
]
