#!/usr/bin/env python3
"""Runs shardc on inputs that no one would write: too deep, too long, not text.

Usage: bad-inputs.py SHARDC. Each case must end with status 1 and one located
error with the given words, in bounded time and memory; a crash, an error
without a place, or a hang fails.
"""
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

N = 100_000
TEN_MB = 10_000_000
MEMORY = 4 << 30
SECONDS = 100

CASES = [
    # name, text, line, column, words
    ("empty", b"", 1, 1, "the file is empty"),
    ("only-comments", b"// nothing\n/* at all */\n", 3, 1, "the file is empty"),
    ("zeros", b"\0" * 1000, 1, 1, "unexpected control character with code 0"),
    ("binary", b"dim A = 4\n\x7fELF\x02\xff\xfe\x00", 2, 6, "not valid UTF-8"),
    ("half-character", "x = é".encode()[:-1], 1, 5, "not valid UTF-8"),
    ("overlong", b"// \xc0\xaf\n", 1, 4, "not valid UTF-8"),
    ("surrogate", b"// \xed\xa0\x80\n", 1, 4, "not valid UTF-8"),
    # An error after a byte order mark and after wide characters: columns count
    # bytes.
    ("mark", b"\xef\xbb\xbfx = $", 1, 8, "unexpected character '$'"),
    ("wide", "/* 漢字 */ x = $".encode(), 1, 18, "unexpected character '$'"),
    # The 201st level: 4 characters before the first.
    ("parentheses", b"x = " + b"(" * N + b"a" + b")" * N, 1, 205, "nested too deeply"),
    ("open-parentheses", b"x = " + b"(" * N, 1, 205, "nested too deeply"),
    ("gathers", b"x = " + b"a[" * N + b"b" + b"]" * N, 1, 406, "nested too deeply"),
    ("minuses", b"x = " + b"-" * N + b"a", 1, 205, "nested too deeply"),
    ("dim-minuses", b"dim A = " + b"- " * N + b"1", 1, 409, "nested too deeply"),
    # A minus sign before a bracket is a level of its own.
    ("minus-parentheses", b"x = " + b"-(" * N + b"a" + b")" * N, 1, 205, "nested too deeply"),
    ("dim-parentheses", b"dim A = " + b"(" * N + b"1" + b")" * N, 1, 209, "nested too deeply"),
    ("calls", b"x = " + b"f(" * N + b"a" + b")" * N, 1, 406, "nested too deeply"),
    ("repeats", b"repeat L{" * N + b"}" * N, 1, 1809, "nested too deeply"),
    ("brackets", b"x = " + b"[" * N, 1, 5, "expected an expression before '['"),
    # The operation that is one too many: 1000 terms of 4 characters are in.
    ("sum", b"x = " + b"a + " * 20000 + b"a", 1, 5, "more than 1000 operations"),
    ("product", b"x = " + b"a * " * 20000 + b"a", 1, 5, "more than 1000 operations"),
    ("dim-sum", b"dim A = " + b"1 + " * 20000 + b"1", 1, 9, "more than 1000 operations"),
    ("long-sum", b"x = " + b"a + " * N + b"a", 1, 1, "statement is too long"),
    ("long-list", b"x[" + b"a, " * N + b"a] = y", 1, 1, "statement is too long"),
    ("digits", b"x = " + b"9" * TEN_MB, 1, 5, "integer does not fit in 64 bits"),
    ("name", b"a" * TEN_MB, 1, TEN_MB + 1, "expected '=' or '+='"),
    ("line", b"a = b " * N + b"]", 1, None, "unexpected ']'"),
    ("spaces", b" " * TEN_MB + b"]", 1, TEN_MB + 1, "before ']'"),
    ("dollars", b"$" * TEN_MB, 1, 1, "unexpected character '$'"),
    ("string", b'import "' + b"a" * TEN_MB, 1, 8, "string is not closed"),
    ("comment", b"x = y\n/* " + b"* " * (TEN_MB // 2), 2, 1, "comment is not closed"),
    ("comments", b"x = y\n" + b"/* " * (TEN_MB // 3), 2, 1, "comment is not closed"),
    ("wide-comment", "x = y\n// {}\n]".format("漢" * (TEN_MB // 3)).encode(), 3, 1, "before ']'"),
    ("braces", b"}" * N, 1, 1, "unmatched '}'"),
]


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))


def run(shardc, text, path):
    path.write_bytes(text)
    return subprocess.run(
        [shardc, "--emit-ast", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=SECONDS,
        preexec_fn=None if "asan" in shardc else limit,
    )


def problem(result, line, column, words):
    if result.returncode != 1:
        return f"status {result.returncode}: {result.stderr[-200:]!r}"
    if result.stdout:
        return "something on standard output"
    errors = re.findall(rb"input\.shd:(\d+):(\d+): error: ([^\n]*)", result.stderr)
    if len(errors) != 1:
        return f"{len(errors)} errors: {[e[2] for e in errors]}"
    found = (int(errors[0][0]), int(errors[0][1]))
    if found[0] != line or column not in (None, found[1]):
        return f"error at {found}, expected ({line}, {column})"
    if words.encode() not in errors[0][2]:
        return f"error {errors[0][2]!r}, expected {words!r}"
    return None


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "input.shd"
        for name, text, line, column, words in CASES:
            try:
                why = problem(run(sys.argv[1], text, path), line, column, words)
            except subprocess.TimeoutExpired:
                why = f"not done after {SECONDS} s"
            if why:
                failed += 1
                print(f"{name}: {why}")
    print(f"{len(CASES) - failed} of {len(CASES)} as expected")
    return 1 if failed else 0


sys.exit(main())
