# SPDX-License-Identifier: Apache-2.0
"""Fails when a page links to a missing file of the repository or to a missing heading, or when a
chapter of the guide does not end with a link to the next one, the last to the table of contents."""
import re
import sys

import source
from source import ROOT, shown

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page):
    """The anchors that a page's headings have, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def problem(page, link):
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return f"{link} does not exist"
    if anchor and anchor not in anchors(target):
        return f"{link} has no such heading"
    return ""


def endings(chapters):
    """What each chapter of the guide lacks at its end."""
    for chapter, following in zip(chapters, [*chapters[1:], None]):
        name = following.name if following else "README.md"
        last = chapter.read_text().rstrip().splitlines()[-1]
        if f"]({name})" not in last or (following and not last.startswith("Next: [")):
            yield f"{shown(chapter)}: does not end with a link to {name}"


def main():
    problems = list(endings(sorted(ROOT.glob("docs/guide/[0-9]*.md"))))
    for page in [*ROOT.glob("*.md"), *source.files(".md", under=["docs", *source.OURS])]:
        links = LINK.findall(FENCED.sub("", page.read_text()))
        found = (problem(page, link) for link in links if "://" not in link)
        problems += [f"{shown(page)}: {text}" for text in found if text]
    return source.report(problems)


if __name__ == "__main__":
    sys.exit(main())
