"""The report of a corpus: one HTML file that needs nothing else, and a picture of it."""

from resources.report.figures import leaderboard_figure_png
from resources.report.judge_tables import JudgeTables
from resources.report.page import write_report

__all__ = ["JudgeTables", "leaderboard_figure_png", "write_report"]
