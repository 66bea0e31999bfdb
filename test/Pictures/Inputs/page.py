"""Checks a page of --emit-html: one file that asks for nothing, whose data are the
JSON report of the same plan, byte for byte once parsed.

    page.py PAGE REPORT

With a browser (`chromium` on the PATH) it is also drawn: no error, and each figure
equals the report's."""

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
    for stage in drawn.get("stages", []):
        stage.pop("events", None)
assert drawn == report
assert len(text) < 3_000_000
assert "default-src 'none'" in text
assert "innerHTML" not in text and "insertAdjacentHTML" not in text

browser = shutil.which("chromium")
if browser:
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu"]
            + [f"--user-data-dir={folder}", "--enable-logging=stderr", "--v=0"]
            + ["--dump-dom", "file://" + os.path.abspath(sys.argv[1])],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert "Uncaught" not in run.stderr, run.stderr
    figures = [each for each in parse(run.stdout).figures if "." in each[0]]
    assert figures or report["schema"] != "shardc.cost/1"
    if report["schema"] == "shardc.cost/1":
        for key, value in figures:
            inside = report
            for part in key.split("."):
                inside = inside[part]
            assert (inside is None and value == "null") or float(value) == inside, key
print("the page holds" + (", and is drawn" if browser else ""))
