"""`python -m pipelines` is `judgeline`, for checkouts that are not installed."""

import sys

from judgeline.cli import main

sys.exit(main())
