"""What every answer of the program is held to."""
import json
import math
import mmap
import os
import resource
import subprocess

NEVER_NEGATIVE = ("_s", "_j", "_bytes", "_per_s", "_w", "_w_per_node")
# Differences, and what can run backwards: a fall of power, a battery that ends emptier.
SIGNED = ("largest_step_w", "stored_j", "first_step_overhead_s", "first_gap_s", "headroom_w", "spare_headroom_w", "shelf_headroom", "down_w_per_s", "up_w_per_s")
ROUNDING = 1e-9


class Runner:
    """Runs the program with bounds on memory and processor time, in the folder of the data."""

    def __init__(self, program, root, cpu_s):
        # AddressSanitizer reserves terabytes of addresses, and takes its time.
        with open(program, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            sanitized = text.find(b"__asan_init") >= 0
        self.program, self.root, self.cpu_s = program, root, cpu_s * (15 if sanitized else 1)
        self.addresses = resource.RLIM_INFINITY if sanitized else 6 << 30
        self.codes, self.slowest = {}, (0.0, [])

    def limits(self):
        os.nice(5)
        resource.setrlimit(resource.RLIMIT_CPU, (self.cpu_s, self.cpu_s + 1))
        resource.setrlimit(resource.RLIMIT_AS, (self.addresses, self.addresses))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def __call__(self, words):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            p = subprocess.run([self.program] + words, capture_output=True, cwd=self.root, preexec_fn=self.limits, timeout=12 * self.cpu_s,
                               stdin=subprocess.DEVNULL, env=dict(os.environ, TRAINWATT_DATA=self.root))
            code, out, err = p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
        except subprocess.TimeoutExpired:
            code, out, err = None, "", ""
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if used > self.slowest[0]:
            self.slowest = (used, words)
        if used >= self.cpu_s:
            code = None
        self.codes[code] = self.codes.get(code, 0) + 1
        return code, out, err


def broken_answer(code, out, err):
    """"" or what is wrong with how a command ended: (class, detail)."""
    if code is None:
        return "no answer in time", ""
    if code < 0:
        return f"signal {-code}", err[-300:]
    if code not in (0, 2, 3, 4):
        return f"exit code {code}", err[-300:]
    if code != 0 and not err.strip():
        return f"exit code {code} without a word", ""
    for word in ("by signal", "bad_alloc", "std::", "Assertion", "internal error", "vector::", "basic_string", "[json.exception"):
        if word in err:
            return f"\"{word}\" in a message", err[-300:]
    if any(w.strip(",;:()") in ("nan", "-nan", "inf", "-inf") for w in out.split()):
        return "nan or inf in a table", next(line for line in out.splitlines() if "nan" in line or "inf" in line)[:300]
    return None


def numbers(node, path=""):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from numbers(value, f"{path}/{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from numbers(value, f"{path}/{i}")
    elif isinstance(node, float) or (isinstance(node, int) and not isinstance(node, bool)):
        yield path, node


def impossible(text):
    """None, or what cannot be in a result: (class, detail)."""
    try:
        results = json.loads(text, parse_constant=lambda c: (_ for _ in ()).throw(ValueError(c)))
    except ValueError as error:
        return "no json", str(error)
    for result in results if isinstance(results, list) else [results]:
        for path, value in numbers(result):
            keys = path.split("/")
            if not math.isfinite(value):
                return "not finite", path
            if abs(value) > 1e40:
                return "beyond all measure", f"{path} = {value:g}"
            if value < -ROUNDING and keys[-1] not in SIGNED and not any(k in ("grid", "differences", "interval", "ramps", "carbon", "cost") for k in keys) and (
                    keys[-1].endswith(NEVER_NEGATIVE) or keys[-2].endswith(("_s", "_j", "_bytes"))):
                return "negative", f"{path} = {value:g}"
        problem = parts(result)
        if problem:
            return problem
    return None


def at(node, path):
    for key in path.split("/"):
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, (int, float)) else None


def parts(r):
    dc, ac = at(r, "energy/total_dc_j"), at(r, "energy/total_ac_j")
    if dc is not None and ac is not None and ac < dc * (1 - 1e-9):
        return "AC below DC", f"{ac} < {dc}"
    for block, what in (("step", "step/time_s"), ("run/time_to_train_s", "run/time_to_train_s/mean"), ("power/node_dc_w", "power/node_dc_w/mean"),
                        ("energy", "energy/total_dc_j")):
        low, value, high = at(r, block + "/interval/low"), at(r, what), at(r, block + "/interval/high")
        if None not in (low, value, high) and not 0 <= low <= value * (1 + 1e-9) <= high * (1 + 2e-9):
            return "an interval that does not hold its value", f"{block}: {low} {value} {high}"
    for low, high in (("power/facility/least_w", "power/facility/mean_w"), ("power/facility/mean_w", "power/facility/peak_w"),
                      ("power/node_dc_w/min", "power/node_dc_w/mean"), ("power/node_dc_w/mean", "power/node_dc_w/max")):
        a, b = at(r, low), at(r, high)
        if a is not None and b is not None and a > b * (1 + 1e-9) + 1e-9:
            return "order", f"{low} = {a} > {high} = {b}"
    books = at(r, "books_error")
    if books is not None and abs(books) > 1e-6:
        return "books of the hall", str(books)
    shares = at(r, "utilisation"), at(r, "goodput"), at(r, "run/goodput"), at(r, "step/mfu")
    if any(s is not None and s > 1 + 1e-9 for s in shares):
        return "share above 1", str(shares)
    return None
