"""Checks a page of --emit-html: one file that asks for nothing, whose data are the
JSON report of the same plan, byte for byte once parsed.

    page.py PAGE REPORT

With a browser (Debian's chromium or chromium-headless-shell) it is also drawn: no
error, no request, each figure equals the report's, and within SECONDS if they are
given as a third argument."""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
with open(sys.argv[2], encoding="utf-8") as file:
    report = json.load(file)


BROKEN = re.compile("NaN|undefined|Infinity")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.stack, self.scripts, self.ids = [], [], set()
        self.figures = []
        # The number of ticks of each chart.
        self.charts = []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "svg":
            self.charts.append(0)
        if "svg" in self.stack:
            self.charts[-1] += values.get("class") == "tick"
            broken = [text for text in values.values() if BROKEN.search(text or "")]
            assert not broken, (tag, broken)
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
        if self.stack and self.stack[-1] == "text":
            assert not BROKEN.search(data), data
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
d3 = [body for values, body in page.scripts if values.get("id") == "library"]
assert len(page.scripts) == 3 and len(data) == 1 and len(d3) == 1
# The notices of d3 stand before its code.
notice, code = d3[0].split("*/", 1)
for part in (
    "D3 5.16.0",
    "Copyright 2010-2022 Mike Bostock",
    "Redistributions in binary form must reproduce the above copyright",
    "SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE",
):
    assert part in notice, part
assert code.strip().startswith("// https://d3js.org v5.16.0 ") and len(code) > 200_000
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
assert "unsafe-eval" not in text
# d3 can parse HTML, by a selection's html(): the page does not ask for it.
own = text.replace(d3[0], "")
for parser in ("innerHTML", "insertAdjacentHTML", ".html(", "d3.html", "DOMParser"):
    assert parser not in own.replace(data[0], ""), parser


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


def others(plan):
    """The bytes at the peak of tensors beyond the 16 largest, which the page sums."""
    peak = plan["memory"]["peak"]
    for i, op in enumerate(plan["ops"]):
        if op.get("memory", {}).get("bytes") == peak:
            alive = plan["memory"]["spans"]
            alive = [span["bytes"] for span in alive if span["first"] <= i <= span["last"]]
            return sum(sorted(alive)[:-16])


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


# Zooms every chart of lanes in each way, and throws where nothing moves, or where
# the wheel alone does.
MOVES = """<script>
function check(svg, dragged) {
  const box = svg.getBoundingClientRect(), middle = box.left + box.width / 2;
  const at = {clientX: middle, clientY: box.top + 9, cancelable: true, view: window};
  const moves = (expected, what, ...events) => {
    const before = svg.innerHTML;
    for (const [target, event] of events) target.dispatchEvent(event);
    if ((svg.innerHTML !== before) !== expected) throw new Error(`zoom: ${what}`);
  };
  const key = key => [svg, new KeyboardEvent("keydown", {key, cancelable: true})];
  const mouse = (target, type, x) => [target, new MouseEvent(type, {...at, clientX: x})];
  const turn = {...at, deltaY: -300};
  const wheel = ctrlKey => [svg, new WheelEvent("wheel", {...turn, ctrlKey})];
  // For the rest of its turn, a drag keeps clicks from whatever is under it.
  if (dragged)
    return moves(true, "drag", mouse(svg, "mousedown", middle),
      mouse(window, "mousemove", middle + 50), mouse(window, "mouseup", middle + 50));
  moves(false, "wheel", wheel(false));
  moves(true, "wheel with Ctrl", wheel(true));
  moves(true, "+", key("+"));
  const button = svg.parentNode.querySelector("button");
  moves(true, "button", [button, new MouseEvent("click")]);
  moves(true, "left", key("ArrowLeft"));
  moves(true, "right", key("ArrowRight"));
  moves(true, "-", key("-"), key("-"), key("-"), key("-"), key("-"));
  moves(false, "whole", key("-"));
  moves(true, "+", key("+"));
}
for (const dragged of [false, true])
  for (const svg of document.querySelectorAll("svg.lanes")) check(svg, dragged);
</script>
"""


def open_page(browser, text):
    """The page drawn and zoomed, what the browser says, and its requests."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "page.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("</body>", MOVES + "</body>"))
        log = os.path.join(folder, "network.json")
        run = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu"]
            + [f"--user-data-dir={folder}", "--enable-logging=stderr", "--v=0"]
            + [f"--log-net-log={log}", "--dump-dom", "file://" + path],
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
    document, said, requests = open_page(browser, text)
    assert "CONSOLE" not in said and "Uncaught" not in said, said
    assert not requests, requests
    seconds = float(document.split('data-drawn-ms="')[1].split('"')[0]) / 1000
    assert len(sys.argv) < 4 or seconds < float(sys.argv[3]), seconds
    result = parse(document)
    assert all(2 <= ticks <= 60 for ticks in result.charts), result.charts
    figures = result.figures
    assert figures
    known = {}
    numbers(report, known)
    for key, value in figures:
        if not key or key == "null":
            continue
        if key == "sum":
            drawn = json.loads(data[0])
            plans = [drawn["serving"][phase] for phase in ("prefill", "decode")] \
                if "serving" in drawn else [drawn]
            assert int(value) in [others(plan) for plan in plans], (key, value)
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
