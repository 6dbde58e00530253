"""Kinds of inputs that the fuzzer makes. A case is {"kind", "files": {name: bytes}, "commands": [[word]]}, where @/name in a
word is a file of its folder; commands run in order while they succeed."""
import glob
import json
import os
import re

from grammar import Grammar, damaged, odd_plan


def words_of(settings):
    return [w for s in settings if "\0" not in s for w in ("--set", s)]


class Cases:
    def __init__(self, root, schema, chance):
        self.chance = chance
        self.grammars = {kind: Grammar(schema(kind), chance) for kind in ("scenario", "cluster", "hall", "study")}
        here = lambda *p: sorted(os.path.relpath(f, root) for f in glob.glob(os.path.join(root, *p)))
        self.root = root
        self.scenarios, self.topologies = here("scenarios", "*.json"), here("topologies", "*.json")
        self.halls, self.studies = here("scenarios", "halls", "*.json"), here("scenarios", "studies", "*.json")
        self.foreign = here("tests", "files", "*")
        self.texts = self.scenarios + self.topologies + self.halls + self.studies
        self.logs = [f for f in here("reference", "**", "result_*.txt") + here("reference", "*", "*", "*", "*", "result_*.txt")]
        self.result = None  # of a run, set by the fuzzer
        # (share, kind)
        self.mix = [(30, self.scenario), (20, self.plan), (10, self.cluster), (6, self.hall), (4, self.study), (16, self.read),
                    (8, self.text), (6, self.damaged_result), (3, self.series)]

    def draw(self):
        return self.chance.choices([k for _, k in self.mix], [s for s, _ in self.mix])[0]()

    def bytes_of(self, path):
        with open(os.path.join(self.root, path), "rb") as f:
            return f.read()

    def settings(self, kind, most=3):
        return [self.grammars[kind].setting() for _ in range(self.chance.choice([1, 1, 1, 2, most]))]

    def runs(self, scenario, settings):
        c, sets = self.chance, words_of(settings)
        commands = [["check", scenario] + sets, ["run", scenario] + sets + ["--json", "@/result.json", "-q"], ["check", "@/result.json"]]
        if c.random() < 0.06:
            commands += [["compare", "@/result.json", "@/result.json"]]
        if c.random() < 0.05:
            commands += [["timeline", scenario] + sets + ["-o", "@/trace.json"]]
        if c.random() < 0.03:
            commands += [["run", scenario] + sets + ["-o", "@/out", "-q"], ["report", "@/out"]]
        if c.random() < 0.03:
            commands += [["run", scenario] + sets + ["--level", "2", "--json", "-", "-q"]]
        return commands

    def scenario(self):
        s = self.chance.choice(self.scenarios)
        return {"kind": "scenario", "files": {}, "commands": self.runs(s, self.settings("scenario"))}

    def plan(self):
        c = self.chance
        s = c.choice(["scenarios/llama3.1-pretraining.json", "scenarios/mixtral-8x7b.json", "scenarios/smc-llama2-70b-lora-8n.json",
                      "scenarios/mlperf-gpt3.json", "scenarios/nemo-pretraining.json"])
        settings = [odd_plan(c)]
        if c.random() < 0.6:
            settings.append("/training/recompute=" + c.choice(["full", "selective", "none", "alternate"]))
        for _ in range(c.choice([0, 1, 2])):
            key = c.choice(["software", "training"])
            node = self.grammars["scenario"].resolved(self.grammars["scenario"].schema["properties"][key])
            inner = c.choice(sorted(k for k in node["properties"] if k != "use"))
            value = self.grammars["scenario"].value(self.grammars["scenario"].resolved(node["properties"][inner]))
            settings.append(f"/{key}/{inner}={value if isinstance(value, str) else json.dumps(value)}")
        return {"kind": "plan", "files": {}, "commands": self.runs(s, settings)}

    def cluster(self):
        c, t = self.chance, self.chance.choice(self.topologies)
        sets = words_of(self.settings("cluster"))
        op = c.choice(["all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all", "send-recv"])
        size = c.choice(["1 B", "0 B", "1 KiB", "64 MB", "1 GiB", "1e18 B"])
        words = ["collective", t] + sets + ["--op", op, "--size", size, "--ranks", c.choice(["1", "2", "8", "16", "24", "64"]), "--json", "@/c.json"]
        if c.random() < 0.3:
            words += ["--algorithm", c.choice(["ring", "tree", "hierarchical", "nvls", "sharp", "direct"])]
        return {"kind": "cluster", "files": {}, "commands": [["topology", t] + sets + ["--json", "@/t.json"], words]}

    def hall(self):
        h, sets = self.chance.choice(self.halls + ["scenarios/halls/smc-week.json"] * 3), words_of(self.settings("hall"))
        # A week of hundreds of jobs takes seconds; a day of them shows the same.
        if self.chance.random() < 0.7:
            sets = ["--set", "/lasts=" + self.chance.choice(["12 h", "30 h"])] + sets
        return {"kind": "hall", "files": {}, "commands": [["hall", h] + sets + ["--json", "@/hall.json", "-q"]]}

    def study(self):
        c = self.chance
        axes = []
        for _ in range(c.choice([1, 1, 2])):
            pointer, node = self.grammars["scenario"].pointer()
            axes.append({"set": {pointer or "/name": [self.grammars["scenario"].value(node) for _ in range(c.choice([1, 2, 3]))]}})
        study = {"name": "s", "scenario": c.choice(self.scenarios), "axes": axes}
        if c.random() < 0.5:
            pointer, node = self.grammars["study"].pointer()
            key = pointer.strip("/").split("/")[0]
            if key:
                node = self.grammars["study"].schema["properties"][key]
                study[key] = self.grammars["study"].value(self.grammars["study"].resolved(node))
        return {"kind": "study", "files": {"study.json": json.dumps(study).encode()},
                "commands": [["sweep", "@/study.json", "-o", "@/out", "-q", "--jobs", "1"]]}

    def read(self):
        c, path = self.chance, self.chance.choice(self.foreign)
        name = "in" + os.path.splitext(path)[1]
        words = ["read", "@/" + name, "-o", "@/read.out"]
        if c.random() < 0.2:
            words += c.choice([["--nodes", c.choice(["2", "100000"])], ["--node-names", "n"], ["--svg", "@/d.svg"], ["--place", "gpu"],
                               ["--map", "time=Timestamp,watts=Power"], ["--name", ""]])
        commands = [words]
        if c.random() < 0.5 and path.endswith((".xml", ".conf", ".yml", "cables_rails.csv", "cables_tors.csv", "v1.json")):
            commands.append(["topology", "@/read.out"])
        return {"kind": "read", "files": {name: damaged(self.bytes_of(path), c)}, "commands": commands}

    def text(self):
        c, path = self.chance, self.chance.choice(self.texts)
        word = ("topology" if path in self.topologies else "hall" if path in self.halls else "check")
        if path in self.studies:
            return {"kind": "text", "files": {"in.json": damaged(self.bytes_of(path), c)}, "commands": [["check", "@/in.json"]]}
        more = ["-q", "--set", "/lasts=12 h"] if word == "hall" else []
        return {"kind": "text", "files": {"in.json": damaged(self.bytes_of(path), c)}, "commands": [[word, "@/in.json"] + more]}

    def damaged_result(self):
        c, result = self.chance, self.result
        command = c.choice([["check", "@/r.json"], ["compare", "@/r.json", "@/good.json"], ["compare", "@/good.json", "@/r.json"], ["report", "@/folder"]])
        name = "folder/result.json" if command[0] == "report" else "r.json"
        if c.random() < 0.5:  # a value of another kind
            tree = json.loads(result)
            node = tree
            while isinstance(node, (dict, list)) and node:
                key = c.choice(sorted(node)) if isinstance(node, dict) else c.randrange(len(node))
                if not isinstance(node[key], (dict, list)) or c.random() < 0.2:
                    node[key] = c.choice([None, [], {}, "x", -1, 1e300, True, 0, [1], {"a": None}])
                    break
                node = node[key]
            data = json.dumps(tree).encode()
        else:
            data = damaged(result, c)
        return {"kind": "result", "files": {name: data, "good.json": result}, "commands": [command]}

    def series(self):
        """Hourly series of a hall: prices, weather, signals with gaps and nonsense."""
        c = self.chance
        path, key = c.choice([("week-price.csv", "/site/price_series"), ("week-carbon.csv", "/site/carbon_series"),
                              ("week-weather.csv", "/cooling/weather"), ("grid-signal.csv", "/budget/signal")])
        data = damaged(self.bytes_of("scenarios/halls/" + path), c)
        return {"kind": "series", "files": {"s.csv": data},
                "commands": [["hall", "scenarios/halls/two-megawatts.json", "--set", key + "=@/s.csv", "--set", "/lasts=12 h"]
                             + ["--json", "@/hall.json", "-q"]]}


def shrunk_settings(case):
    """The case without one of its settings, for each of them."""
    settings = sorted({c[i + 1] for c in case["commands"] for i in range(len(c) - 1) if c[i] == "--set"})
    for gone in settings:
        commands = []
        for c in case["commands"]:
            words, i = [], 0
            while i < len(c):
                if c[i] == "--set" and c[i + 1] == gone:
                    i += 2
                else:
                    words.append(c[i])
                    i += 1
            commands.append(words)
        yield {**case, "commands": commands}


def shrunk_files(case):
    """The case with a part of one of its files cut out: halves first, then ever smaller parts."""
    for name, data in case["files"].items():
        lines = re.split(rb"(?<=\n)", data)
        for units in ([lines] if len(lines) > 1 else []) + [[data[i:i + 1] for i in range(len(data))]]:
            size = len(units) // 2
            while size > 0 and len(units) <= 4000:
                for begin in range(0, len(units), size):
                    yield {**case, "files": {**case["files"], name: b"".join(units[:begin] + units[begin + size:])}}
                size //= 2
