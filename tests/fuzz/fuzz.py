#!/usr/bin/env python3
"""Grammar-aware fuzzer: shipped inputs with random values of random keys, drawn from the program's own schemas, and damaged files.

    fuzz.py --program build/release/bin/trainwatt [--seed 1] [--seconds 60] [--most N] [--kinds plan,read]
    fuzz.py --program build/release/bin/trainwatt --replay tests/fuzz/found
    fuzz.py --program build/release/bin/trainwatt --shrink /tmp/faults --store tests/fuzz/found

Scenarios, plans, clusters, halls, studies, foreign files, results and hourly series. What is held: exit codes of the contract
(1 is a bug, so is a signal), a line that says why, an answer within --cpu seconds of processor time, results without NaN, negative
times or energies, whose parts add up, that `trainwatt check` agrees with, what `check` accepts `run` takes, and no file left
behind. The same seed makes the same inputs. A fault is shrunk, printed and, with --store, kept as json; the exit code is 1 then.
"""
import argparse
import base64
import glob
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

from cases import Cases, shrunk_files, shrunk_settings  # noqa: E402
from held import Runner, broken_answer, impossible  # noqa: E402

MOST_TRIALS = 60  # to shrink a fault


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--program", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--most", type=int, default=10**9)
    p.add_argument("--cpu", type=int, default=20, help="processor seconds that an answer may take")
    p.add_argument("--kinds", default="", help="only these, separated by commas")
    p.add_argument("--store", default="", help="folder for faults")
    p.add_argument("--shrink", default="", help="folder of faults of fuzz_in_process: made small, told and stored")
    p.add_argument("--replay", default="", help="folder of stored faults: nothing of them may happen again")
    return p.parse_args()


class Fuzzer:
    def __init__(self, a, folder):
        self.folder = folder
        self.runner = Runner(os.path.abspath(a.program), ROOT, a.cpu)
        schema = lambda kind: json.loads(subprocess.run([a.program, "schema", kind], capture_output=True, check=True).stdout)
        self.cases = Cases(ROOT, schema, random.Random(a.seed))
        code, out, err = self.runner(["run", "scenarios/smc-llama2-70b-lora-1n.json", "--json", "-", "-q"])
        if code != 0:
            sys.exit(f"the program does not run: {err}")
        self.cases.result = out.encode()
        self.faults, self.known, self.kinds, self.accepted = 0, {}, {}, {}
        self.store = a.store

    def fault(self, case):
        """None, or (class, detail, command) of what is wrong with the answers to a case."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for name, data in case["files"].items():
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        os.makedirs(self.folder, exist_ok=True)
        checked, before = False, set(os.listdir(self.folder))
        for command in case["commands"]:
            words = [w.replace("@/", self.folder + "/") for w in command]
            code, out, err = self.runner(words)
            wrong = broken_answer(code, out, err)
            if not wrong and checked and command[0] == "run" and code == 2:
                wrong = "run refuses what check accepts", err[-300:]
            if not wrong and command[:2] == ["check", "@/result.json"] and code != 0:
                wrong = "check refuses a result of run", err[-300:]
            if not wrong and any(".part" in f for f in os.listdir(self.folder)):
                wrong = "a part of a file is left", str(os.listdir(self.folder))
            if not wrong and code in (2, 3) and command[0] in ("read", "hall", "topology") and set(os.listdir(self.folder)) - before - {"read.out"}:
                wrong = "a refusal wrote files", str(os.listdir(self.folder))
            for name in ("result.json", "hall.json", "c.json", "t.json"):
                path = os.path.join(self.folder, name)
                if not wrong and code in (0, 4) and "@/" + name in command and "--json" in command and os.path.exists(path):
                    with open(path, encoding="utf-8") as f:
                        wrong = impossible(f.read())
            if not wrong and code in (0, 4) and command[0] in ("run", "hall", "topology", "collective", "import") and ["--json", "-"] == [
                    w for i, w in enumerate(command) if w == "--json" or (i > 0 and command[i - 1] == "--json")]:
                wrong = impossible(out)
            if wrong:
                return wrong[0], wrong[1], words
            if code not in (0, 4) or (code == 4 and command[0] != "run"):
                return None
            checked = checked or command[0] == "check"
        self.accepted[case["kind"]] = self.accepted.get(case["kind"], 0) + 1
        return None

    def shrunk(self, case, kind):
        trials, again = 0, True
        while again and trials < MOST_TRIALS:
            again = False
            for ways in (shrunk_settings, shrunk_files):
                for smaller in ways(case):
                    trials += 1
                    if trials >= MOST_TRIALS:
                        return case
                    fault = self.fault(smaller)
                    if fault and fault[0] == kind:
                        case, again = smaller, True
                        break
                if again:
                    break
        return case

    def tell(self, case, fault):
        self.faults += 1
        pointers = sorted({w.split("=")[0] for c in case["commands"] for w in c if w.startswith("/") and "=" in w})
        family = fault[0] + " | " + case["kind"]
        self.known[family] = self.known.get(family, 0) + 1
        if self.known[family] > 12:
            return
        if fault[0] != "no answer in time":
            case = self.shrunk(case, fault[0])
            fault = self.fault(case) or fault
        print(f"{fault[0]}: {fault[1]}\n  trainwatt", " ".join(f"'{w}'" for w in fault[2]), pointers, flush=True)
        if self.store:
            text = {"why": fault[0], "detail": fault[1], "kind": case["kind"], "commands": case["commands"],
                    "files": {n: base64.b64encode(d).decode() for n, d in case["files"].items()}}
            name = hashlib.sha256(json.dumps(text).encode()).hexdigest()[:10]
            os.makedirs(self.store, exist_ok=True)
            with open(os.path.join(self.store, f"{case['kind']}-{name}.json"), "w", encoding="utf-8") as f:
                json.dump(text, f, indent=1)

    def one(self, wanted):
        case = self.cases.draw()
        if wanted and case["kind"] not in wanted:
            return False
        self.kinds[case["kind"]] = self.kinds.get(case["kind"], 0) + 1
        fault = self.fault(case)
        if fault:
            self.tell(case, fault)
        return True


def stored(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as text:
            case = json.load(text)
        case["files"] = {n: base64.b64decode(d) for n, d in case["files"].items()}
        yield path, case


def shrink(f, folder):
    for path, case in stored(folder):
        fault = f.fault(case)
        if fault:
            f.tell(case, fault)
        else:
            print(f"{os.path.basename(path)}: nothing wrong in a process of its own ({case['why']}: {case['detail']})")


def replay(f, folder):
    paths = []
    for path, case in stored(folder):
        paths.append(path)
        fault = f.fault(case)
        if fault:
            f.faults += 1
            print(f"{os.path.basename(path)}: {fault[0]}: {fault[1]}")
    print(f"{len(paths)} stored faults, {f.faults} of them again")


def main():
    a = arguments()
    with tempfile.TemporaryDirectory() as folder:
        f = Fuzzer(a, os.path.join(folder, "case"))
        if a.shrink:
            shrink(f, a.shrink)
            return 1 if f.faults else 0
        if a.replay:
            replay(f, a.replay)
            return 1 if f.faults else 0
        end, count, wanted = time.monotonic() + a.seconds, 0, set(filter(None, a.kinds.split(",")))
        while time.monotonic() < end and count < a.most:
            count += f.one(wanted)
        print(f"seed {a.seed}: {count} inputs {f.kinds}, accepted to the end {f.accepted}, exit codes {f.runner.codes}, {f.faults} faults {f.known}")
        print(f"slowest {f.runner.slowest[0]:.1f} s: trainwatt", " ".join(f"'{w}'" for w in f.runner.slowest[1]))
    return 1 if f.faults else 0


if __name__ == "__main__":
    sys.exit(main())
