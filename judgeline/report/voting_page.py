"""The page on which people vote: one file that loads nothing, with texts as data."""

from pathlib import Path
from typing import Any

from judgeline.report.escaping import in_json
from judgeline.report.page import TEMPLATES, policy, write_atomically


def write_voting_page(path: Path, data: Any) -> Path:
    """Write the voting page of some battles, atomically.

    `data` has ``page`` (an id), ``told`` (a sentence), ``n_possible``, ``battles`` by key (texts
    ``question``, ``a`` and ``b``), and ``raters``: of each a list of ``key``, ``first`` (the side
    shown first), ``place`` and ``probability`` of the draw. Texts stand in the page as JSON whose
    ``<`` are escaped, so that none of them ends the element or begins another, and the page's
    policy runs its one script alone.
    """
    script = (TEMPLATES / "vote.js").read_text(encoding="utf-8")
    page = (TEMPLATES / "vote.html").read_text(encoding="utf-8")
    embedded = in_json(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    head, of_data = page.split("@DATA@")
    before, after = of_data.split("@SCRIPT@")
    head = head.replace("@POLICY@", policy(script))
    return write_atomically(path, "".join([head, embedded, before, script, after]))
