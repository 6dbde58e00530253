#!/usr/bin/env python3
"""SIGKILL at random moments of every command that writes: no file is torn, what was there before is whole, and a sweep that is
resumed ends with the bytes of an undisturbed one and simulates no finished point again.

    kills.py --program build/release/bin/trainwatt [--seed 1] [--kills 1000]

Files that a killed process was writing (*.part) are all that may be left beside whole ones. Exit code 1 where one is torn.
"""
import argparse
import filecmp
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SMALL = "scenarios/smc-llama2-70b-lora-1n.json"
STUDY = {"name": "killed", "scenario": SMALL, "axes": [{"set": {"/site/pue": [1.05, 1.1, 1.2, 1.3]}}], "seeds": [1, 2, 3, 4, 5],
         "figures": [{"x": "/site/pue", "y": "energy.facility_j"}]}
# Words of each command; @ is the folder that it writes into, % that of what it reads.
COMMANDS = {
    "run -o": ["run", SMALL, "-o", "@/out", "--json", "@/all.json", "-q"],
    "run --telemetry": ["run", SMALL, "--telemetry", "@/power.sqlite", "-q"],
    "run --telemetry csv": ["run", SMALL, "--telemetry", "@/power.csv", "-q"],
    "run --mlperf-logs": ["run", SMALL, "--mlperf-logs", "@/logs", "-q"],
    "sweep": ["sweep", "%/study.json", "-o", "@/sweep", "-q"],
    "sweep --resume": ["sweep", "%/study.json", "-o", "@/sweep", "--resume", "-q"],
    "plan": ["plan", "scenarios/smc-llama2-70b-lora-8n.json", "--simulate", "4", "--save", "@/plan.json", "--json", "@/plans.json", "-q"],
    "hall": ["hall", "scenarios/halls/two-megawatts.json", "--set", "/lasts=12 h", "-o", "@/hall", "-q"],
    "import": ["import", "reference/mlperf_logs", "-o", "@/import", "-q"],
    "report": ["report", "%/out", "-o", "@/page.html"],
    "read": ["read", "tests/files/nccl_h100.xml", "--nodes", "4", "-o", "@/cluster.json", "--svg", "@/cluster.svg"],
    "calibrate": ["calibrate", "reference/gpu_lab", "reference/gpu_lab_2", "--gpu", "H100", "--datasheet", "models/accelerators/h100-sxm.json",
                  "-o", "@/h100.json"],
    "timeline": ["timeline", SMALL, "-o", "@/step.json"],
    "merge": ["merge", "%/1", "%/2", "-o", "@/all", "--overwrite", "-q"],
}
LOOSE = (".sqlite", ".png")  # the same rows or picture in other bytes


class Trial:
    def __init__(self, program, folder):
        self.program, self.folder, self.trials = os.path.abspath(program), folder, 0
        self.read = os.path.join(folder, "read")
        os.makedirs(self.read)
        with open(os.path.join(self.read, "study.json"), "w", encoding="utf-8") as f:
            json.dump(STUDY, f)
        self.done(["run", SMALL, "-o", "%/out", "-q"], folder)
        for i in "12":
            self.done(["sweep", "%/study.json", "-o", "%/" + i, "--shard", i + "/2", "-q"], folder)
        self.whole, self.takes = {}, {}
        for name, words in COMMANDS.items():
            there = os.path.join(folder, "whole", name.replace(" ", "_"))
            os.makedirs(there)
            begin = time.monotonic()
            self.done(words, there)
            self.takes[name], self.whole[name] = time.monotonic() - begin, there

    def start(self, words, there):
        words = [w.replace("@", there).replace("%", self.read) if w[0] in "@%" else w for w in words]
        return subprocess.Popen([self.program] + words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env=dict(os.environ, TRAINWATT_DATA=ROOT), stdin=subprocess.DEVNULL)

    def done(self, words, there):
        p = self.start(words, there)
        err = p.communicate()[1].decode(errors="replace")
        if p.returncode != 0:
            sys.exit(f"trainwatt {' '.join(words)} ends with {p.returncode}: {err}")

    def torn(self, name, there):
        """Files that are neither whole nor absent."""
        for base, _, files in os.walk(there):
            for f in files:
                path = os.path.join(base, f)
                whole = os.path.join(self.whole[name], os.path.relpath(path, there))
                if ".part" in os.path.relpath(path, there) or f.endswith(("-wal", "-shm", ".lock", "-journal")):
                    continue
                if not os.path.exists(whole):
                    yield f"{f} is no output"
                elif f.endswith(".sqlite"):
                    if not sound(path):
                        yield f"{f} is damaged"
                elif f == "sweep.csv":  # grows: whole lines
                    with open(path, "rb") as a, open(whole, "rb") as b:
                        if not set(a.read().split(b"\n")) <= set(b.read().split(b"\n")):
                            yield f"{f} is torn"
                elif f.endswith(LOOSE):
                    if os.path.getsize(path) < 0.5 * os.path.getsize(whole):
                        yield f"{f} is torn"
                elif f != "table.txt" and not filecmp.cmp(path, whole, shallow=False) and not dated(path, whole):
                    yield f"{f} differs from an undisturbed one"

    def kill(self, name, chance):
        """None, or what is wrong after one kill."""
        shutil.rmtree(os.path.join(self.folder, f"trial-{self.trials}"), ignore_errors=True)
        self.trials += 1
        there = os.path.join(self.folder, f"trial-{self.trials}")  # of its own: a gnuplot that lost its parent may still write
        before = chance.random() < 0.5 and name not in ("sweep", "run --mlperf-logs")
        if before:
            shutil.copytree(self.whole[name], there)
        else:
            os.makedirs(there)
        p = self.start(COMMANDS[name], there)
        time.sleep(chance.random() * self.takes[name] * 1.1)
        p.send_signal(signal.SIGKILL)
        p.communicate()
        time.sleep(0.01)
        problem = next(self.torn(name, there), None)
        if not problem and before:
            gone = [f for base, _, files in os.walk(self.whole[name]) for f in files
                    if not os.path.exists(os.path.join(there, os.path.relpath(os.path.join(base, f), self.whole[name])))]
            problem = f"{gone[0]} was there before and is gone" if gone and name not in ("merge", "sweep --resume") else None
        return problem or (self.resumed(there) if name.startswith("sweep") else None)

    def resumed(self, there):
        path = os.path.join(there, "sweep", "sweep.sqlite")
        finished = set()
        if os.path.exists(path):
            with sqlite3.connect(path) as db:
                if db.execute("SELECT count(*) FROM sqlite_master WHERE name='points'").fetchone()[0]:
                    finished = {r[0] for r in db.execute("SELECT point FROM points")}
                    db.executescript("CREATE TABLE again(point); CREATE TRIGGER told AFTER INSERT ON points BEGIN "
                                     "INSERT INTO again VALUES(NEW.point); END;")
            db.close()
        self.done(COMMANDS["sweep --resume"], there)
        if finished:
            with sqlite3.connect(path) as db:
                twice = finished & {r[0] for r in db.execute("SELECT point FROM again")}
            db.close()
            if twice:
                return f"{len(twice)} finished points were simulated again"
        if not filecmp.cmp(os.path.join(there, "sweep", "sweep.csv"), os.path.join(self.whole["sweep"], "sweep", "sweep.csv"), shallow=False):
            return "the resumed table differs from an undisturbed one"
        return None


def sound(path):
    try:
        with sqlite3.connect(path) as db:
            ok = db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        db.close()
        return ok
    except sqlite3.DatabaseError:
        return False


def dated(path, whole):
    """The same but for what names the time or the folder: as many bytes within a hundredth, the same end."""
    with open(path, "rb") as a, open(whole, "rb") as b:
        one, other = a.read(), b.read()
    return abs(len(one) - len(other)) <= 0.01 * len(other) + 64 and one[-8:] == other[-8:]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--program", required=True)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--kills", type=int, default=1000)
    a.add_argument("--only", default="")
    a = a.parse_args()
    chance, faults, counts = random.Random(a.seed), 0, {}
    names = [n for n in COMMANDS if a.only in n]
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(a.program, folder)
        for i in range(a.kills):
            name = names[i % len(names)]
            counts[name] = counts.get(name, 0) + 1
            problem = trial.kill(name, chance)
            if problem:
                faults += 1
                print(f"kill {i}, {name}: {problem}", flush=True)
    print(f"seed {a.seed}: {a.kills} kills {counts}, {faults} torn, lost or recomputed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
