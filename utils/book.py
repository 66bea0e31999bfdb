#!/usr/bin/env python3
"""Compares shardc with worked numbers: those of How to Scale Your Model in
test/Book, those of training in test/Training.

    utils/book.py FILE.shd...    asks the questions of files of these folders
    utils/book.py --write        writes docs/Book.md and docs/TrainingNumbers.md,
                                 the tables of all cases
    utils/book.py --check        prints how these pages differ from them

`--shardc PATH` names the shardc to ask, build/bin/shardc by default.
The folder's cases.json holds the cases. Its program ID.shd asks case ID.
The first line says what is asked; then come, each a comment,

    ASK:     the options of shardc, if it needs any; --emit-json is added
    OTHER:   another file of the folder and options, whose report is `other`
    FIGURE:  what the answer is, in figures of shardc's JSON
    EXPECT:  the answer, where the case has no value or another one
    NOTE:    what a reader of the table should know; comments on the lines after it
             belong to it
    DIFFERS: the same, where the answer rightly is not the book's: why

not-asked.txt has a line `ID | question | what is missing` for each
other case.

A figure is a path such as `time.compute_s`, `memory.peak`, `tensors[W].dims[D].size`
or `ops[all_gather W].time_s`: of a list, brackets select the one element that all
their words name (`name`, `kind`, `index`, `what`, `op`, `operand`, `phase`), with `*`
all that they name, and a number counts. Added to the report are `local[W]`, a tensor's type on one device,
`collectives`, all of them as a text, `best[PATH]`, the point of a sweep at which PATH
is least, and `error`, the message of a rejected program. Figures combine by
arithmetic, `sum`, `dot` (the sum of products), `ceil` and `sqrt`; several answers are separated by `;`. The report
is in SI units: `us` and `day` convert."""

import json
import math
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Reports round times to picoseconds.
ROUNDING = 1e-6


class Failure(Exception):
    """What is wrong with a question or its answer."""


class Question:
    """A program with its directives."""

    def __init__(self, path):
        self.folder = os.path.dirname(os.path.abspath(path))
        self.id = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.title = lines[0].removeprefix("//").strip()
        self.options, self.figure, self.expected = [], None, None
        self.other = None
        self.note, self.differs = "", False
        inNote = False
        for line in lines[1:]:
            match = re.match(r"// (ASK|OTHER|FIGURE|EXPECT|NOTE|DIFFERS|RUN): *(.*)", line)
            if match:
                word, text = match.groups()
                inNote = word in ("NOTE", "DIFFERS")
                self.differs |= word == "DIFFERS"
                if word == "ASK":
                    self.options += shlex.split(text)
                elif word == "OTHER":
                    self.other = shlex.split(text)
                elif word == "FIGURE":
                    self.figure = text
                elif word == "EXPECT":
                    self.expected = text
                elif inNote:
                    self.note = text
            elif inNote and re.match(r"//  *\S", line):
                self.note += " " + line[2:].strip()
            else:
                inNote = False
        if self.figure is None:
            raise Failure(f"{self.id}: a FIGURE line is missing")


def run(question, shardc):
    """The JSON that answers a question, with what is added to it."""
    report = ask(question, [f"{question.id}.shd"] + question.options, shardc)
    if question.other:
        report["other"] = ask(question, question.other, shardc)
    return report


def ask(question, arguments, shardc):
    process = subprocess.run([shardc, "--emit-json"] + arguments, cwd=question.folder,
                             capture_output=True, text=True)
    if process.returncode == 1 and "error" in question.figure:
        message = re.search(r"error: (.*)", process.stderr)
        return {"error": message.group(1) if message else process.stderr}
    # 3 is the status of a plan that does not fit; its report is whole.
    if process.returncode not in (0, 3):
        raise Failure(f"{question.id}: {process.stderr.strip()}")
    report = json.loads(process.stdout)
    if "ops" in report:
        report["local"] = {t["name"]: localType(report, t) for t in report["tensors"]}
        report["collectives"] = collectives(report)
    return report


def localType(report, tensor):
    sizes = {axis["name"]: axis["size"] for axis in report["mesh"]["axes"]}
    extents = [-(-dim["size"] // math.prod(sizes[axis] for axis in dim["axes"]))
               for dim in tensor["dims"]]
    return f"{tensor['dtype']}[{', '.join(map(str, extents))}]"


def collectives(report):
    """The collectives in program order; slices are local and free."""
    moves = [f"{op['kind']} {op['operand']} over {','.join(op['axes'])}"
             for op in report["ops"] if "axes" in op and op["kind"] != "all_slice"]
    return "; ".join(moves) or "none"


def words(element):
    """The words that select an element of a list."""
    keys = ("name", "kind", "index", "what", "op", "operand", "phase")
    return {element[key] for key in keys if element.get(key) is not None}


def select(value, key, path):
    if isinstance(value, dict):
        if key not in value:
            raise Failure(f"{path}: no '{key}' among {', '.join(value)}")
        return value[key]
    if not isinstance(value, list):
        raise Failure(f"{path}: nothing to select '{key}' from")
    if re.fullmatch(r"-?\d+", key):
        return value[int(key)]
    found = [e for e in value if set(key.split()) <= words(e)]
    if len(found) != 1:
        raise Failure(f"{path}: '{key}' selects {len(found)} elements, not one")
    return found[0]


def look(document, path):
    """The figure at a path, a list of them if the path takes all of a list."""
    values, many = [document], False
    for name, key in re.findall(r"\.?(\w+)|\[([^\]]*)\]", path):
        if "*" in key.split():
            wanted = set(key.split()) - {"*"}
            values, many = [e for value in values for e in value
                            if wanted <= words(e)], True
        else:
            values = [select(value, name or key, path) for value in values]
    return values if many else values[0]


def figure(document, path):
    best = re.match(r"best\[([^\]]*)\]\.?(.*)", path)
    if best:
        measure, path = best.groups()
        points = [p for p in document["points"] if p.get("report")]
        document = min(points, key=lambda point: look(point["report"], measure))
    return look(document, path)


PATH = re.compile(r"[a-z_]\w*(?:\.\w+|\[[^\]]*\])+")


def evaluate(document, expression):
    code = PATH.sub(lambda match: f"figure({match.group()!r})", expression)
    names = {"figure": lambda path: figure(document, path),
             "sum": sum, "dot": lambda a, b: sum(x * y for x, y in zip(a, b)),
             "ceil": math.ceil, "sqrt": math.sqrt,
             "us": 1e-6, "day": 86400.0, "error": "none"}
    return eval(code, {"__builtins__": {}}, names | document)


def show(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        whole = abs(value - round(value)) <= ROUNDING * abs(value)
        return str(round(value)) if whole and abs(value) < 1e12 else f"{value:.4g}"
    return str(value)


def difference(value, expected):
    return abs(value - expected) / abs(expected)


class Answer:
    """What shardc answers, and what of it is wrong, if anything."""

    def __init__(self, question, case, shardc):
        document = run(question, shardc)
        values = [evaluate(document, part) for part in question.figure.split(";")]
        self.value = values[0]
        self.shown = "; ".join(map(show, values))
        self.wrong = None
        if question.expected is None:
            self.compareWithValue(case)
        elif isNumber(question.expected):
            if difference(self.value, float(question.expected)) > 1e-3:
                self.wrong = f"{self.value:.10g}, not {question.expected}"
            elif case["value"] is not None and not question.differs:
                self.wrong = "the case has another value, but no DIFFERS line says why"
        elif self.shown != question.expected:
            self.wrong = f"'{self.shown}', not '{question.expected}'"
        elif case["value"] is not None and isinstance(self.value, float):
            self.compareWithValue(case)

    def compareWithValue(self, case):
        if case["value"] is None or not isinstance(self.value, (int, float)):
            self.wrong = "needs an EXPECT line"
            return
        tolerance = max(case["rel_tol"] or 0, ROUNDING)
        distance = difference(self.value, case["value"])
        if distance > tolerance:
            self.wrong = (f"{self.value:.10g}, {100 * distance:.3g} % from "
                          f"{case['value']:.10g}; {100 * tolerance:.3g} % are allowed")


def isNumber(text):
    return re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", text) is not None


class Suite:
    """A folder of programs and the page that is written of it."""

    def __init__(self, folder, page, source):
        self.folder = os.path.join(ROOT, "test", folder)
        self.page = os.path.join(ROOT, "docs", page)
        # The heading of the column with the cases' values.
        self.source = source
        with open(os.path.join(self.folder, "cases.json"), encoding="utf-8") as file:
            self.cases = {case["id"]: case for case in json.load(file)}
        with open(os.path.join(self.folder, "not-asked.txt"), encoding="utf-8") as file:
            rows = [[part.strip() for part in line.split("|")] for line in file]
        self.notAsked = {row[0]: row[1:] for row in rows}


class Book(Suite):
    def __init__(self):
        super().__init__("Book", "Book.md", "the book")

    def section(self, case):
        """Where the case stands on the page, and the heading there."""
        number = int(re.search(r"ch (\d+)", case["chapter"]).group(1))
        return number, f"Chapter {number}: {CHAPTERS[number]}"

    def header(self, asked, differ):
        *most, last = differ
        return BOOK_HEADER.format(total=len(self.cases), asked=asked,
                                  missing=len(self.notAsked),
                                  differ=", ".join(most) + " and " + last)


class Training(Suite):
    def __init__(self):
        super().__init__("Training", "TrainingNumbers.md", "expected")
        for case in self.cases.values():
            case["rel_tol"] = case["tolerance"]

    def section(self, case):
        return list(TOPICS).index(case["topic"]), TOPICS[case["topic"]]

    def header(self, asked, differ):
        return TRAINING_HEADER.format(
            total=len(self.cases), asked=asked, missing=len(self.notAsked),
            differ=", but for " + ", ".join(differ) + ", whose remarks say why" if differ
            else "")


def suiteOf(path):
    name = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return Training() if name == "Training" else Book()


def checkFiles(files, shardc):
    status = 0
    for path in files:
        question = Question(path)
        answer = Answer(question, suiteOf(path).cases[question.id], shardc)
        if answer.wrong:
            print(f"error: {question.id}: {answer.wrong}", file=sys.stderr)
            status = 1
        else:
            print(f"{question.id}: {answer.shown}")
    return status


def row(*cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def caseValue(case):
    if case["value"] is None:
        return case["answer"]
    return f"{show(case['value'])} {case['unit']}".strip()


def distance(answer, case):
    if case["value"] is None or not isinstance(answer.value, (int, float)):
        return ""
    percent = 100 * (answer.value / case["value"] - 1)
    return "0" if abs(percent) < 0.005 else f"{percent:+.2g} %"


def page(suite, shardc):
    cases, notAsked = suite.cases, suite.notAsked
    asked = {os.path.splitext(name)[0] for name in os.listdir(suite.folder)
             if name.endswith(".shd")}
    for case in cases:
        if (case in asked) == (case in notAsked):
            raise Failure(f"{case}: neither or both of a program and a line of not-asked.txt")
    for case in sorted(asked | set(notAsked)):
        if case not in cases:
            raise Failure(f"{case}: no such case")
    questions = [Question(os.path.join(suite.folder, case + ".shd"))
                 for case in cases if case in asked]
    # Each test starts this file anew: what only the page needs is imported here.
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = dict(zip((q.id for q in questions),
                           pool.map(lambda q: Answer(q, cases[q.id], shardc), questions)))
    for case, answer in answers.items():
        if answer.wrong:
            raise Failure(f"{case}: {answer.wrong}")
    lines = [suite.header(len(asked), [q.id for q in questions if q.differs])]
    heading = None
    for question in sorted(questions, key=lambda q: suite.section(cases[q.id])[0]):
        case, answer = cases[question.id], answers[question.id]
        if suite.section(case)[1] != heading:
            heading = suite.section(case)[1]
            lines.append(f"\n## {heading}\n\n")
            lines.append(row("case", "question", "options", suite.source, "shardc",
                             "difference", "remark"))
            lines.append(row(*["---"] * 7))
        options = f"`{shlex.join(question.options)}`" if question.options else ""
        path = os.path.relpath(os.path.join(suite.folder, question.id + ".shd"),
                               os.path.dirname(suite.page))
        lines.append(row(f"[{question.id}]({path})", question.title, options,
                         caseValue(case), answer.shown, distance(answer, case),
                         question.note))
    lines.append(NOT_ASKED)
    lines.append(row("case", "question", "what is missing"))
    lines.append(row(*["---"] * 3))
    for case in cases:
        if case in notAsked:
            lines.append(row(case, *notAsked[case]))
    return "".join(lines)


CHAPTERS = {1: "rooflines", 2: "TPUs", 3: "sharded matrices", 4: "transformers",
            5: "training", 6: "training LLaMA-3", 7: "inference", 8: "serving LLaMA-3",
            9: "profiling", 10: "JAX", 12: "GPUs"}

TOPICS = {"params": "Parameters", "flops": "FLOPs", "mfu": "Measured steps",
          "dp": "Data parallel", "zero": "ZeRO", "fsdp": "FSDP", "hsdp": "HSDP",
          "gradacc": "Gradient accumulation", "tp": "Tensor parallel",
          "sp": "Sequence parallel", "remat": "Saved activations",
          "offload": "Offload", "moe": "Experts", "ep": "Expert parallel",
          "pipeline": "Pipelines", "cp": "Context parallel",
          "ulysses": "Ulysses", "recipe": "Recipes", "serving": "Serving"}

BOOK_HEADER = """# The numbers of the book

<!-- Written by utils/book.py --write from test/Book. -->

*How to Scale Your Model* ([jax-ml.github.io/scaling-book](https://jax-ml.github.io/scaling-book)) works through examples and exercises with a pencil.
{total} of their numbers are in [`test/Book/cases.json`](../test/Book/cases.json); shardc answers {asked} of them from a program and [{missing}](#not-asked) are not asked. Its answer agrees with the book's, as closely as the book rounds, but for {differ}, whose remarks say why.

A case is asked by `shardc test/Book/CASE.shd` and the options of its row. The line `FIGURE:` of the program says which figure of the report is the answer.
"""

TRAINING_HEADER = """# Numbers of training

<!-- Written by utils/book.py --write from test/Training. -->

Papers on training and serving, public code, a lecture and a book work out parameters, memory, bytes on the wire, utilizations of training steps, and latency and price of serving.
{total} of their numbers are in [`test/Training/cases.json`](../test/Training/cases.json) with their sources; shardc answers {asked} of them from a program, most with a `train` block, and [{missing}](#not-asked) are not asked. Its answer agrees within the tolerance of the case{differ}.

A case is asked by `shardc test/Training/CASE.shd` and the options of its row. The line `FIGURE:` of the program says which figure of the report is the answer. Programs say what the question fixes, and leave the rest to the search. [Training.md](Training.md) says how a program becomes a training step, [Serving.md](Serving.md) how it becomes prefill and decode.
"""

NOT_ASKED = "\n## Not asked\n\n"


def main():
    arguments = sys.argv[1:]
    shardc = os.path.join(ROOT, "build", "bin", "shardc")
    if "--shardc" in arguments:
        at = arguments.index("--shardc")
        shardc = os.path.abspath(arguments[at + 1])
        del arguments[at:at + 2]
    if not arguments or arguments[0] == "--help":
        print(__doc__)
        return 0
    try:
        if arguments[0] not in ("--write", "--check"):
            return checkFiles(arguments, shardc)
        return max(update(suite, arguments[0] == "--write", shardc)
                   for suite in (Book(), Training()))
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1


def update(suite, writes, shardc):
    current = page(suite, shardc)
    if writes:
        with open(suite.page, "w", encoding="utf-8") as file:
            file.write(current)
        return 0
    from difflib import unified_diff
    with open(suite.page, encoding="utf-8") as file:
        written = file.read()
    sys.stderr.writelines(unified_diff(
        written.splitlines(True), current.splitlines(True),
        os.path.relpath(suite.page, ROOT), "current"))
    return int(written != current)


if __name__ == "__main__":
    sys.exit(main())
