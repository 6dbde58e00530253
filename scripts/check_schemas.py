#!/usr/bin/env python3
"""Holds every shipped input against the generated schemas with an independent validator, and proves that the schemas
refuse what the reader refuses."""
import json
import pathlib
import re
import sys

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = [
    ("scenarios/*.json", "scenario"),
    ("topologies/*.json", None),
    ("models/networks/*.json", None),
    ("models/sites/*.json", "site"),
    ("scenarios/studies/*.json", "study"),
    ("models/software/*.json", "software"),
    ("models/benchmarks/*.json", "benchmark"),
    ("reference/suites/*.json", "suite"),
    ("reference/known_gaps.json", "known_gaps"),
]
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.S)


def load(path):
    """JSON without its comments."""
    text = TOKEN.sub(lambda m: m.group(0) if m.group(0).startswith('"') else " ", path.read_text())
    return json.loads(text)


def schemas():
    found = {}
    for path in sorted((ROOT / "schemas").glob("*.json")):
        schema = json.loads(path.read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        found[schema["title"]] = jsonschema.Draft7Validator(schema)
    return found


def main():
    known = schemas()
    bad = 0
    for pattern, kind in KINDS:
        for path in sorted(ROOT.glob(pattern)):
            data = load(path)
            # A folder with several kinds: one of them has to take the file.
            candidates = [kind] if kind else sorted(known)
            if not any(known[k].is_valid(data) for k in candidates):
                bad += 1
                first = known[kind].iter_errors(data) if kind else []
                print(f"{path.relative_to(ROOT)}: refused by its schema", *[e.message[:200] for e in first][:3])
    scenario = load(sorted((ROOT / "scenarios").glob("*.json"))[0])
    for key, value in [("nmae", 1), ("plan", {"nodes": -1, "gbs": 8}), ("plan", {"nodes": 1}), ("site", 3)]:
        if known["scenario"].is_valid({**scenario, key: value}):
            bad += 1
            print(f"the schema of a scenario takes {key} = {value}")
    print(f"{len(known)} schemas, {bad} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
