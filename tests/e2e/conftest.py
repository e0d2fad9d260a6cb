"""The fault server and what else the tests of resources share is of use here too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "resources"))
