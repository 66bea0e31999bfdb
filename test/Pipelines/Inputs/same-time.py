"""Compares the time that a report's note promises with another report's."""
import json
import sys

promised, bound = (json.load(open(name)) for name in sys.argv[1:])
expected = promised["mesh"]["faster"]["scheduled_s"]
found = bound["time"]["scheduled_s"]
if expected != found:
    sys.exit(f"expected {expected}, found {found}")
