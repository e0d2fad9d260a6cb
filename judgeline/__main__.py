"""`python -m judgeline` is `judgeline`."""

from judgeline.cli import main

raise SystemExit(main())
