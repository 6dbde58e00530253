#!/usr/bin/env python3
"""Grammar-aware fuzzer: shipped scenarios with random values of random inputs, drawn from the program's own schemas.

    fuzz.py --program build/release/bin/trainwatt [--seed 1] [--seconds 60] [--most N]

Every input is checked and, when it is valid, run; what is held: exit codes of the contract (1 is a bug, so is a signal),
one line or more that says why, an answer in time, results that `trainwatt check` agrees with, no file left behind.
The same seed makes the same inputs. Faults are printed with the command that shows them; the exit code is 1 then.
"""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
UNITS = ["s", "ms", "us", "h", "B", "GB", "GiB", "GB/s", "Gbit/s", "W", "kW", "TFLOP/s", "kg/kWh", "USD/kWh", "V", "Hz"]
NUMBERS = [0, 1, 2, 3, 7, 8, 64, 100, 1e3, 1e6, 1e9, 1e18, 1e300, -1, 0.5, 1e-9, 1e-300]


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--program", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--most", type=int, default=10**9)
    p.add_argument("--timeout", type=float, default=60)
    return p.parse_args()


class Grammar:
    """Pointers of the scenario's schema with random values for them."""

    def __init__(self, schema, chance):
        self.definitions = schema.get("definitions", {})
        self.schema = schema
        self.chance = chance

    def resolved(self, node):
        for option in node.get("anyOf", []):
            if "$ref" in option:
                return self.definitions[option["$ref"].rsplit("/", 1)[1]]
        return node

    def pointer(self):
        node, path = self.schema, ""
        while True:
            keys = sorted(k for k in node.get("properties", {}) if k != "use")
            if not keys:
                return path, node
            key = self.chance.choice(keys)
            path, node = f"{path}/{key}", self.resolved(node["properties"][key])
            if "properties" in node and self.chance.random() < 0.05:
                return path, node

    def value(self, node, depth=0):
        c = self.chance
        if c.random() < 0.08:  # of another kind altogether
            return c.choice([None, True, "x", -1, [], {}, "nan", "\u00e9\n", [[[]]]])
        if "enum" in node:
            return c.choice(node["enum"])
        kind = node.get("type")
        if kind == "boolean":
            return c.random() < 0.5
        if kind in ("integer", "number"):
            low, high = node.get("minimum", 0), node.get("maximum", 1e4)
            inside = c.choice([low, high, (low + high) / 2, low + 1, c.uniform(low, min(high, low + 100))])
            number = inside if c.random() < 0.7 else c.choice(NUMBERS)
            return int(number) if kind == "integer" and abs(number) < 1e15 else number
        if "pattern" in node:
            unit = node["examples"][0].split(" ", 1)[1] if c.random() < 0.85 else c.choice(UNITS)
            base = float(node["examples"][0].split(" ", 1)[0])
            number = base * c.choice([1, 0.5, 2, 10, 0.1]) if c.random() < 0.6 else c.choice(NUMBERS)
            return f"{number:g} {unit}"
        if kind == "array" and depth < 3:
            return [self.value(self.resolved(node["items"]), depth + 1) for _ in range(c.choice([0, 1, 1, 2, 5]))]
        if "properties" in node and depth < 3:
            keys = [k for k in node["properties"] if k != "use" and c.random() < 0.5]
            return {k: self.value(self.resolved(node["properties"][k]), depth + 1) for k in keys}
        if kind == "object":
            return {}
        return c.choice(["", "a", "models/nothing.json", "node-0"])


class Fuzzer:
    def __init__(self, a, folder):
        self.a, self.folder = a, folder
        self.chance = random.Random(a.seed)
        schema = json.loads(subprocess.run([a.program, "schema", "scenario"], capture_output=True, check=True).stdout)
        self.grammar = Grammar(schema, self.chance)
        self.scenarios = sorted(glob.glob(os.path.join(ROOT, "scenarios", "*.json")))
        self.faults, self.codes = 0, {}

    def run(self, words):
        begin = time.monotonic()
        try:
            p = subprocess.run([self.a.program] + words, capture_output=True, timeout=self.a.timeout, cwd=ROOT)
            code, out, err = p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
        except subprocess.TimeoutExpired:
            code, out, err = None, "", ""
        self.codes[code] = self.codes.get(code, 0) + 1
        why = None
        if code is None:
            why = f"no answer in {time.monotonic() - begin:.0f} s"
        elif code < 0 or code not in (0, 2, 3, 4):
            why = f"exit code {code}: {err[-300:]}"
        elif code != 0 and not err.strip():
            why = f"exit code {code} without a word"
        elif "signal" in err or "nan" in out.lower().replace("nanosecond", ""):
            why = f"signal or NaN: {err[-300:]}"
        if why:
            self.faults += 1
            print(why, "\n  trainwatt", " ".join(f"'{w}'" for w in words), flush=True)
        return code

    def one(self):
        words = [self.chance.choice(self.scenarios)]
        for _ in range(self.chance.choice([1, 1, 1, 2, 3])):
            pointer, node = self.grammar.pointer()
            value = self.grammar.value(node)
            text = value if isinstance(value, str) else json.dumps(value)
            words += ["--set", f"{pointer}={text}"]
        if "\0" in "".join(words) or self.run(["check"] + words) != 0:
            return
        result = os.path.join(self.folder, "result.json")
        if self.run(["run"] + words + ["--json", result, "-q"]) in (0, 4) and os.path.exists(result):
            self.run(["check", result])
            os.remove(result)
        left = os.listdir(self.folder)
        if left:
            self.faults += 1
            print("left behind:", left, words, flush=True)


def main():
    a = arguments()
    with tempfile.TemporaryDirectory() as folder:
        f = Fuzzer(a, folder)
        end = time.monotonic() + a.seconds
        count = 0
        while time.monotonic() < end and count < a.most:
            f.one()
            count += 1
        print(f"{count} inputs, exit codes {f.codes}, {f.faults} faults")
    return 1 if f.faults else 0


if __name__ == "__main__":
    sys.exit(main())
