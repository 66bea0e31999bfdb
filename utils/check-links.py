#!/usr/bin/env python3
"""Resolves the links of the documentation, and what comments cite of it.

    utils/check-links.py           checks this repository
    utils/check-links.py FOLDER    checks another one

In docs, README.md and AGENTS.md every link must lead to a file, and an anchor to
a heading, by GitHub's rule. Everywhere else every `NAME.md` must be a page of this
repository, and `PAGE.md#anchor` a heading of it; a section's number is no citation,
since headings move. Prints FILE:LINE: and what is wrong; exit status 1 if anything
is."""

import difflib
import os
import re
import sys
from urllib.parse import unquote

PAGES = ("docs", "README.md", "AGENTS.md")
SOURCES = (
    "CMakeLists.txt",
    "benchmark",
    "cmake",
    "grammar",
    "hardware",
    "include",
    "lib",
    "models",
    "setup.sh",
    "test",
    "test.sh",
    "tools",
    "utils",
)

FENCE = re.compile(r"\s*(```+|~~~+)")
HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
NAMED = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*(\S+)")
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
CITATION = re.compile(r"(?<![\w./*-])((?:\w[\w-]*/)*\w[\w-]*\.md)(?:#([\w-]+))?(?![\w-])")
PLACEHOLDER = re.compile(r"(?!README|AGENTS)[A-Z]+\.md")
NUMBERED = re.compile(r"\.md`?\)?,?[\s/#*]+sections?[\s/#*]+[0-9]")

# Broken links on purpose.
OWN_TEST = os.path.join("test", "Utils", "check-links.test")


def files_of(root, names):
    """The files behind names of files and folders, in order."""
    for name in names:
        path = os.path.join(root, name)
        if os.path.isfile(path):
            yield path
        for folder, folders, files in os.walk(path):
            folders.sort()
            for file in sorted(files):
                yield os.path.join(folder, file)


def anchor_of(heading):
    """GitHub's rule: lower case, without punctuation, hyphens for spaces."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[^\w\- ]", "", text.lower())
    return text.replace(" ", "-")


def prose_of(text):
    """Numbered lines outside of fenced code."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and fence is None:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = None
        elif fence is None:
            yield number, line


def anchors_of(text):
    anchors, seen = set(), {}
    for _, line in prose_of(text):
        anchors.update(NAMED.findall(line))
        if heading := HEADING.match(line):
            anchor = anchor_of(heading[2])
            times = seen.get(anchor, 0)
            seen[anchor] = times + 1
            anchors.add(f"{anchor}-{times}" if times else anchor)
    return anchors


def nearest(name, names):
    """What was probably meant, for the message."""
    found = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.5)
    return f"; did you mean '{found[0]}'?" if found else ""


class Checker:
    def __init__(self, root):
        self.root = root
        self.anchors = {}
        self.errors = []
        self.checked = 0

    def error(self, path, number, message):
        self.errors.append(f"{os.path.relpath(path, self.root)}:{number}: {message}")

    def read(self, path):
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def check_anchor(self, path, number, target, anchor):
        if target not in self.anchors:
            self.anchors[target] = anchors_of(self.read(target))
        if anchor not in self.anchors[target]:
            page = os.path.relpath(target, self.root)
            self.error(
                path,
                number,
                f"'{page}' has no heading '#{anchor}'"
                + nearest(anchor, self.anchors[target]),
            )

    def check_page(self, path):
        for number, line in prose_of(self.read(path)):
            line = CODE.sub("", line)
            for link in LINK.findall(line) + DEFINITION.findall(line):
                if not EXTERNAL.match(link):
                    self.check_link(path, number, unquote(link))

    def check_link(self, path, number, link):
        self.checked += 1
        name, _, anchor = link.partition("#")
        base = self.root if name.startswith("/") else os.path.dirname(path)
        target = os.path.normpath(os.path.join(base, name.lstrip("/"))) if name else path
        if not os.path.exists(target):
            self.error(path, number, f"link to '{link}': no such file")
        elif anchor and target.endswith(".md"):
            self.check_anchor(path, number, target, anchor)

    def check_citations(self, path, pages):
        text = self.read(path)
        if path.endswith(".md"):
            text = LINK.sub("", text)
        for match in CITATION.finditer(text):
            name, anchor = match.groups()
            if PLACEHOLDER.fullmatch(name):
                continue
            self.checked += 1
            number = text.count("\n", 0, match.start()) + 1
            target = os.path.join(self.root, name)
            if "/" not in name:
                target = pages.get(name, target)
            if not os.path.isfile(target):
                self.error(path, number, f"'{name}' is no page of this repository")
            elif anchor:
                self.check_anchor(path, number, target, anchor)
        for match in NUMBERED.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            self.error(path, number, "cite a heading (PAGE.md#anchor), not its number")

    def check(self):
        documents = [p for p in files_of(self.root, PAGES) if p.endswith(".md")]
        pages = {os.path.basename(page): page for page in documents}
        for path in documents:
            self.check_page(path)
            self.check_citations(path, pages)
        for path in files_of(self.root, SOURCES):
            if os.path.relpath(path, self.root) == OWN_TEST:
                continue
            self.check_citations(path, pages)


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    checker = Checker(os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else here))
    checker.check()
    for error in checker.errors:
        print(error)
    broken = len(checker.errors)
    print(f"{checker.checked} links and citations, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
