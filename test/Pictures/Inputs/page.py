"""Checks a page of --emit-html: one file that asks for nothing, whose data are the
JSON report of the same plan, byte for byte once parsed.

    page.py PAGE REPORT

With a browser (Debian's chromium or chromium-headless-shell) it is also drawn: no
error, no request, each figure equals the report's, and within SECONDS if they are
given as a third argument."""

import html.parser
import json
import os
import shutil
import subprocess
import sys
import tempfile

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
with open(sys.argv[2], encoding="utf-8") as file:
    report = json.load(file)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.stack, self.scripts, self.ids = [], [], set()
        self.figures = []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        for name in ("src", "href", "action", "data"):
            target = values.get(name) or ""
            assert not target or target[0] == "#" or target == "data:,", (tag, target)
        assert tag not in ("iframe", "object", "embed", "img"), tag
        if "id" in values:
            assert values["id"] not in self.ids, values["id"]
            self.ids.add(values["id"])
        if "data-key" in values:
            self.figures.append((values["data-key"], values["data-value"]))
        if tag == "script":
            self.scripts.append([values, ""])
        if tag not in ("meta", "link", "input"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1] == tag, (tag, self.stack)
        self.stack.pop()

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "script":
            self.scripts[-1][1] += data


def parse(source):
    page = Page()
    page.feed(source)
    page.close()
    return page


page = parse(text)
assert not page.stack, page.stack
data = [body for values, body in page.scripts if values.get("type") == "application/json"]
assert len(page.scripts) == 2 and len(data) == 1
assert "<" not in data[0]
drawn = json.loads(data[0])
if "timeline" not in report:
    # A page is drawn with the timeline, which adds keys.
    drawn.pop("timeline", None)
    for op in drawn.get("ops", []):
        op.pop("memory", None)
    drawn.get("memory", {}).pop("spans", None)
    for stage in drawn.get("stages", []):
        stage.pop("events", None)
assert drawn == report
assert len(text) < 3_000_000
assert "default-src 'none'" in text
assert "innerHTML" not in text and "insertAdjacentHTML" not in text



def numbers(value, found):
    """Adds the numbers of a report to `found`, by their keys."""
    if isinstance(value, list):
        for each in value:
            numbers(each, found)
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, (int, float)):
                found.setdefault(key, set()).add(float(each))
            elif each is None:
                found.setdefault(key, set()).add(None)
            numbers(each, found)


def urls(events, found):
    """Addresses that a log of the network tells of."""
    if isinstance(events, list):
        for each in events:
            urls(each, found)
    elif isinstance(events, dict):
        if isinstance(events.get("url"), str):
            found.add(events["url"])
        for each in events.values():
            urls(each, found)


def open_page(browser, path):
    """The drawn document, what the browser says, and its requests."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "network.json")
        run = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu"]
            + [f"--user-data-dir={folder}", "--enable-logging=stderr", "--v=0"]
            + [f"--log-net-log={log}", "--dump-dom", "file://" + os.path.abspath(path)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        with open(log, encoding="utf-8") as file:
            requests = set()
            urls(json.load(file)["events"], requests)
    outside = {url for url in requests if url.split(":")[0] not in ("file", "data")}
    return run.stdout, run.stderr, outside


browser = shutil.which("chromium") or shutil.which("chromium-headless-shell")
if browser:
    document, said, requests = open_page(browser, sys.argv[1])
    assert "CONSOLE" not in said and "Uncaught" not in said, said
    assert not requests, requests
    seconds = float(document.split('data-drawn-ms="')[1].split('"')[0]) / 1000
    assert len(sys.argv) < 4 or seconds < float(sys.argv[3]), seconds
    figures = parse(document).figures
    assert figures
    known = {}
    numbers(report, known)
    for key, value in figures:
        if not key or key == "null":
            continue
        if report["schema"] == "shardc.cost/1" and "." in key:
            inside = report
            for part in key.split("."):
                inside = inside[part]
            assert (inside is None and value == "null") or float(value) == inside, key
            continue
        of_key = known.get(key.split(".")[-1], set())
        assert (None if value == "null" else float(value)) in of_key, (key, value)
print("the page holds" + (", and is drawn" if browser else ""))
