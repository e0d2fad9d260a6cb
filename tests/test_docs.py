"""The pages of docs/ as a site: links lead somewhere, doors have a page, the notebook runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from judgeline.paths import ROOT


@pytest.mark.slow
def test_the_site_is_built_without_a_broken_link_and_holds_the_doors(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "site" / "api" / "index.html").read_text(encoding="utf-8")
    for door in ("judgeline.api.rank", "judgeline.elo.rate", "judgeline.winrate.adjust_models"):
        assert f'id="{door}"' in reference
    notebook = (tmp_path / "site" / "board" / "index.html").read_text(encoding="utf-8")
    assert "24 models from model-21" in notebook, "the notebook was not executed"
    packages = {path.parent.name for path in (ROOT / "judgeline").glob("*/__init__.py")}
    undocumented = {one for one in packages if f'id="judgeline{one}"' not in reference}
    assert undocumented == {"io", "judges", "report", "steps", "tables"}
