#!/usr/bin/env python3
"""What the fuzz targets begin with: inputs from models/, hardware/ and test/, and
the words of the languages.

    utils/fuzz-corpus.py DIR

Fills DIR/TARGET/ with inputs, one a file, and writes DIR/TARGET.dict, libFuzzer's
dictionary, for every target of test/Fuzz.
"""

import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Planning over four axes takes 20 s with sanitizers.
MANY_AXES = re.compile(r"^mesh \[([^],]*,){3,}", re.M)
# Larger programs take up to a second each with sanitizers, and there are hundreds.
MOST_BYTES = 300


def parts(path):
    """The inputs of one file: split-file's, and those between lines of // -----."""
    text = path.read_text(errors="replace")
    found = re.split(r"^//--- .*\n", text, flags=re.M)
    for part in found[1:] or found:
        yield from re.split(r"^// -----.*\n", part, flags=re.M)


def texts(*patterns):
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            # The book's machines have thousands of chips, each of them routed.
            if "Book" not in path.parts:
                yield from (text for text in parts(path) if not MANY_AXES.search(text))


def programs():
    """Small programs, without lines that are comments."""
    for text in texts("models/*.shd", "test/**/*.shd", "test/**/*.test"):
        code = re.sub(r"^\s*//.*\n", "", text, flags=re.M)
        if len(code) <= MOST_BYTES:
            yield code


def questions():
    """Texts of the options that the tests' command lines have."""
    option = re.compile(r"--(sweep|crossover|mesh|hardware|dim)[= ](?:'([^']*)'|\"([^\"]*)\"|(\S+))")
    for path in sorted(ROOT.glob("test/**/*")):
        if path.suffix in (".test", ".shd"):
            for line in path.read_text(errors="replace").splitlines():
                found = [f"{m[1]} {m[2] or m[3] or m[4]}" for m in option.finditer(line)]
                if found:
                    yield "\n".join(found) + "\n"


def language_words():
    """Literals of the grammar, and names of functions."""
    grammar = (ROOT / "grammar/Shd.g4").read_text()
    grammar = re.sub(r"//.*", "", grammar)
    words = set(re.findall(r"'([^'\\\s]+)'", grammar))
    table = (ROOT / "lib/Frontend/FunctionTable.cpp").read_text()
    words |= set(re.findall(r'\{"([a-z_0-9]+)"', table))
    return words


def machine_words():
    """Names of fields and units of the catalogue."""
    words = language_words()
    for path in ROOT.glob("hardware/*.shd"):
        text = re.sub(r"//.*", "", path.read_text())
        words |= set(re.findall(r"[A-Za-z][A-Za-z_.]*(?:/[A-Za-z]+)?", text))
    return words


def dialect_words():
    """Operations, attributes and keywords of the dialects' assembly."""
    words = {"module", "tensor<", "xf32>", "xbf16>", "xi32>", "!", "#shd.", "shd.", "spmd.", "->", "loc(unknown)"}
    for path in ROOT.glob("include/shardc/Dialect/**/*.td"):
        text = path.read_text()
        words |= set(re.findall(r"`([^`\s]+)`", text))
        words |= set(re.findall(r'Op<"([a-z_]+)"', text))
        words |= set(re.findall(r'EnumAttrCase<"[A-Za-z]+", \d+, "([a-z_]+)"', text))
        words |= set(re.findall(r"\$([a-z_]+)", text))
    return words


TARGETS = {
    "fuzz-program": (programs, language_words),
    "fuzz-hardware": (lambda: texts("hardware/*.shd", "test/**/*hardware*", "test/**/*machine*"), machine_words),
    "fuzz-dialects": (lambda: texts("test/**/*.mlir"), dialect_words),
    "fuzz-questions": (questions, language_words),
}


def quoted(word):
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main():
    folder = Path(sys.argv[1])
    for target, (inputs, words) in TARGETS.items():
        corpus = folder / target
        corpus.mkdir(parents=True, exist_ok=True)
        for text in inputs():
            data = text.encode()
            (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
        lines = [quoted(word) + "\n" for word in sorted(words())]
        (folder / f"{target}.dict").write_text("".join(lines))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
