"""Links of a page: its elements, not its texts, may refer to nothing outside it."""

import re
from html.parser import HTMLParser

_LOADING = ("src", "href", "xlink:href", "srcset", "poster", "data", "action", "formaction")
_INSIDE = ("data:", "#")
_STYLES = re.compile(r"""(?:url\(|@import\s)\s*["']?([^\s"')]+)""", re.IGNORECASE)


def references(page: str) -> list[str]:
    """Return what a browser would have to fetch to show a page, in order."""
    found = _References()
    found.feed(page)
    found.close()
    return [one for one in found.wanted if one and not one.lower().startswith(_INSIDE)]


class _References(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the addresses that an element loads, and those of its style."""
        self._in_style = tag == "style"
        for name, value in attrs:
            if name in _LOADING:
                self.wanted.append((value or "").strip())
            elif name in ("style", "fill", "clip-path", "mask", "filter"):
                self.wanted += _STYLES.findall(value or "")

    def handle_endtag(self, tag: str) -> None:
        """Leave a style sheet."""
        self._in_style = self._in_style and tag != "style"

    def handle_data(self, data: str) -> None:
        """Take the addresses in a style sheet; text on the page refers to nothing."""
        if self._in_style:
            self.wanted += _STYLES.findall(data)
