#!/usr/bin/env python3
"""What goes wrong around the program: a full disk, a read-only folder, closed descriptors and pipes, little memory, two writers
on one folder, a clock that jumps. Held for every command that writes: an exit code of the contract with a line that says why, no
torn file under its own name, and where it says 0 the bytes of an undisturbed run.

    faults.py --program build/release/bin/trainwatt [--only "full disk"]

Mounts need root or user namespaces (unshare); where neither is to be had they are left out and said. Exit code 1 for a fault.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from kills import COMMANDS, ROOT, SMALL, Trial  # noqa: E402

JUMPS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static long jump(void) { static long n; return ((n++ % 5) - 2) * 3600; } /* two hours back to two hours on, call by call */
int clock_gettime(clockid_t id, struct timespec* t) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  int r = real(id, t);
  if (id == CLOCK_REALTIME) t->tv_sec += jump();
  return r;
}
time_t time(time_t* out) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); if (out) *out = t.tv_sec; return t.tv_sec; }
int gettimeofday(struct timeval* t, void* z) { struct timespec s; (void)z; clock_gettime(CLOCK_REALTIME, &s); t->tv_sec = s.tv_sec; t->tv_usec = s.tv_nsec / 1000; return 0; }
"""


class Faults(Trial):
    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.found, self.tried, self.left_out = 0, 0, []
        self.unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]

    def words(self, name, there):
        return [self.program] + [w.replace("@", there).replace("%", self.read) if w[0] in "@%" else w for w in COMMANDS[name]]

    def run(self, words, **more):
        return subprocess.run(words, cwd=ROOT, capture_output=True, stdin=subprocess.DEVNULL, timeout=300,
                              env={**os.environ, "TRAINWATT_DATA": ROOT, **more.pop("env", {})}, **more)

    def tell(self, what, name, problem):
        self.tried += 1
        if problem:
            self.found += 1
            print(f"{what}, {name}: {problem}", flush=True)

    def problem(self, name, there, code, err, allowed=(0, 2)):
        if code not in allowed:
            return f"ends with {code}: {err.strip()[-300:]}"
        if code != 0 and not err.strip():
            return f"ends with {code} without a word"
        for word in ("internal error", "std::", "terminate", "signal"):
            if word in err:
                return f"\"{word}\" is said: {err.strip()[-300:]}"
        part = [f for _, _, files in os.walk(there) for f in files if ".part" in f]
        return next(self.torn(name, there), f"{part[0]} is left" if part else None)

    def fresh(self, name):
        self.trials += 1
        there = os.path.join(self.folder, f"fault-{self.trials}")
        os.makedirs(there)
        return there

    def mounted(self, what, size, mount):
        """`mount` is a shell line for $1, after which the command runs; the files are copied out to be looked at."""
        if subprocess.run(self.unshare + ["true"], capture_output=True, check=False).returncode != 0:
            self.left_out.append(what)
            return
        for name in COMMANDS:
            there, seen = self.fresh(name), self.fresh(name)
            line = mount + '; seen=$2; there=$1; shift 2; "$@"; code=$?; cp -r "$there"/. "$seen"; exit $code'
            p = self.run(self.unshare + ["sh", "-c", line, "sh", there, seen] + self.words(name, there))
            err = p.stderr.decode(errors="replace")
            self.tell(f"{what} {size}", name, self.problem(name, seen, p.returncode, err))

    def full_disk(self):
        for size in ("16k", "64k", "256k"):
            self.mounted("full disk", size, f'mount -t tmpfs -o size={size} none "$1"')

    def read_only(self):
        self.mounted("read-only folder", "", 'mount -t tmpfs none "$1" && mount -o remount,ro "$1"')

    def closed(self):
        """Descriptors that nobody opened: a file must not take their place and get what is meant for the terminal."""
        for name in COMMANDS:
            for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
                there = self.fresh(name)
                p = self.run(["sh", "-c", f'exec "$@" {closed}', "sh"] + self.words(name, there))
                err = p.stderr.decode(errors="replace") or "(closed)"
                self.tell("closed " + closed, name, self.problem(name, there, p.returncode, err))

    def pipe(self):
        """A reader that goes away: SIGPIPE ends the program, as it does others."""
        for words in (["run", SMALL, "--json", "-"], ["validate", "smc", "--json", "-"], ["schema", "scenario"], ["timeline", SMALL, "-o", "-"],
                      ["topology", "topologies/smc-h100.json", "--svg", "-"], ["import", "reference/mlperf_logs", "--json", "-", "-q"]):
            p = subprocess.Popen([self.program] + words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, TRAINWATT_DATA=ROOT))
            p.stdout.close()
            err = p.stderr.read().decode(errors="replace")
            code = p.wait()
            self.tell("closed pipe", words[0], None if code in (-13, 2) else f"ends with {code}: {err[-300:]}")

    def little_memory(self):
        for name in COMMANDS:
            for mib in (24, 32, 48, 64, 96, 128, 192, 256):
                there = self.fresh(name)
                limit = ["sh", "-c", f'ulimit -v {mib << 10}; exec "$@"', "sh"]
                if self.run(limit + [self.program, "--version"]).returncode != 0:
                    continue  # the loader itself does not get what it needs
                p = self.run(limit + self.words(name, there))
                self.tell(f"{mib} MiB of memory", name, self.problem(name, there, p.returncode, p.stderr.decode(errors="replace"), (0, 2, 4)))
                shutil.rmtree(there)

    def two_writers(self):
        for name in COMMANDS:
            for _ in range(3):
                there = self.fresh(name)
                both = [self.start(COMMANDS[name], there) for _ in range(2)]
                answers = [(p.communicate()[1].decode(errors="replace"), p.returncode) for p in both]
                problem = next(filter(None, (self.problem(name, there, code, err) for err, code in answers)), None)
                if not problem and all(code != 0 for _, code in answers):
                    problem = f"neither wrote: {answers[0][0][-200:]}"
                self.tell("two writers", name, problem)

    def clock(self):
        library = os.path.join(self.folder, "jumps.so")
        p = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"], input=JUMPS.encode(), capture_output=True, check=False)
        if p.returncode != 0:
            self.left_out.append("clock")
            return
        for name in COMMANDS:
            there, begin = self.fresh(name), time.monotonic()
            p = self.run(self.words(name, there), env={"LD_PRELOAD": library})
            problem = self.problem(name, there, p.returncode, p.stderr.decode(errors="replace"), (0,))
            late = time.monotonic() - begin > 20 * self.takes[name] + 5
            self.tell("a clock that jumps", name, problem or ("waits for the clock" if late else None))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--program", required=True)
    a.add_argument("--only", default="")
    a = a.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        f = Faults(a.program, folder)
        for name, work in (("full disk", f.full_disk), ("read-only", f.read_only), ("closed", f.closed), ("pipe", f.pipe),
                           ("little memory", f.little_memory), ("two writers", f.two_writers), ("clock", f.clock)):
            if a.only in name:
                work()
    left = f", left out: {', '.join(f.left_out)}" if f.left_out else ""
    print(f"{f.tried} faults around the program, {f.found} that it does not stand{left}")
    return 1 if f.found else 0


if __name__ == "__main__":
    sys.exit(main())
