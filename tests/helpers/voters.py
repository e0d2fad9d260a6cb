"""Raters who open a voting page, vote on it, and save their files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def embedded(page: Path) -> dict[str, Any]:
    """What a page holds."""
    return json.loads(page.read_text("utf-8").split('id="data">')[1].split("</script>")[0])


def voted(page: Path, choose: Callable[[int, list[str]], str], folder: Path) -> list[Path]:
    """Vote as `choose` says of the texts shown first and second, a file for each rater."""
    data, paths = embedded(page), []
    folder.mkdir(exist_ok=True)
    for number, order in enumerate(data["raters"], start=1):
        lines = []
        for one in order:
            texts = data["battles"][one["key"]]
            sides = [texts[one["first"]], texts["ab".replace(one["first"], "")]]
            vote = {
                "page": data["page"], "key": one["key"], "rater": f"r{number}",
                "rater_number": number, "place": one["place"], "n_possible": data["n_possible"],
                "probability": one["probability"], "shown_first": one["first"],
                "choice": choose(number, sides), "time": "2026-11-28T01:00:00Z", "seconds": 4.0,
            }  # fmt: skip
            lines.append(json.dumps(vote))
        paths.append(folder / f"votes-{number}.jsonl")
        paths[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths
