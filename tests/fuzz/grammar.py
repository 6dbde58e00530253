"""Random values for random places of an input, drawn from the program's schemas, and random damage to texts."""
import json
import re

UNITS = ["s", "ms", "us", "h", "d", "B", "GB", "GiB", "GB/s", "Gbit/s", "W", "kW", "TFLOP/s", "kg/kWh", "USD/kWh", "V", "Hz"]
NUMBERS = [0, 1, 2, 3, 7, 8, 64, 100, 1e3, 1e6, 1e9, 1e18, 1e300, -1, 0.5, 1e-9, 1e-300]
TIMES = ["0 s", "1 us", "1 ms", "1 s", "90 s", "5 min", "1 h", "36 h", "30 d", "-1 s"]
TOKENS = [b"", b"0", b"-1", b"1e999", b"nan", b"null", b"true", b"[]", b"{}", b"\"", b"\\", b",", b":", b"\n", b"\0", b"\xff\xfe",
          b"<", b"/>", b"<!--", b"&#0;", b"=", b"18446744073709551616", b"1e308", b"//", b"/*", b"'", b";", b"\t", b"\r\n"]


class Grammar:
    """Pointers of a schema with random values for them."""

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
            if node.get("type") == "array" and self.chance.random() < 0.7:  # an entry instead of the whole
                inner = self.resolved(node.get("items", {}))
                if "properties" in inner:
                    path, node = f"{path}/{self.chance.choice([0, 0, 0, 1, 2])}", inner
            if "properties" in node and self.chance.random() < 0.05:
                return path, node

    def value(self, node, depth=0):
        c = self.chance
        if c.random() < 0.06:  # of another kind altogether
            return c.choice([None, True, "x", -1, [], {}, "nan", "\u00e9\n", [[[]]]])
        if "enum" in node:
            return c.choice(node["enum"])
        kind = node.get("type")
        if kind == "boolean":
            return c.random() < 0.5
        if kind in ("integer", "number"):
            low, high = node.get("minimum", node.get("exclusiveMinimum", 0)), node.get("maximum", 1e4)
            inside = c.choice([low, high, (low + high) / 2, low + 1, c.uniform(low, min(high, low + 100)), c.choice([1, 2, 4, 8])])
            number = inside if c.random() < 0.8 else c.choice(NUMBERS)
            return int(number) if kind == "integer" and abs(number) < 1e15 else number
        if "pattern" in node and node.get("examples"):
            base, unit = node["examples"][0].split(" ", 1)
            if unit == "us" and c.random() < 0.8:
                return c.choice(TIMES)
            unit = unit if c.random() < 0.92 else c.choice(UNITS)
            number = float(base) * c.choice([1, 0.5, 2, 10, 0.1]) if c.random() < 0.7 else c.choice(NUMBERS)
            return f"{number:g} {unit}"
        if kind == "array" and depth < 3:
            return [self.value(self.resolved(node["items"]), depth + 1) for _ in range(c.choice([0, 1, 1, 2, 5]))]
        if "properties" in node and depth < 3:
            must = set(node.get("required", [])) | set(node.get("then", {}).get("required", []))
            keys = [k for k in node["properties"] if k != "use" and (k in must or c.random() < 0.3)]
            return {k: self.value(self.resolved(node["properties"][k]), depth + 1) for k in keys}
        if kind == "object":
            inner = node.get("additionalProperties")
            return {"a": self.value(self.resolved(inner), depth + 1)} if isinstance(inner, dict) and depth < 3 else {}
        return c.choice(["", "a", "models/nothing.json", "node-0"])

    def setting(self):
        pointer, node = self.pointer()
        value = self.value(node)
        return f"{pointer}={value if isinstance(value, str) else json.dumps(value)}"


def odd_plan(chance):
    """A plan that might be valid: sizes that divide, a schedule with the chunks that it wants."""
    c = chance
    schedule = c.choice(["gpipe", "1f1b", "1f1b", "zb_h1", "interleaved_zero_bubble", "zbv", "dualpipev", "dualpipe"])
    nodes, tp, pp, cp = c.choice([1, 2, 4, 8]), c.choice([1, 1, 2, 4, 8]), c.choice([1, 1, 2, 4, 8, 3]), c.choice([1, 1, 2, 4])
    vp = 2 if schedule in ("zbv", "dualpipev") and c.random() < 0.9 else c.choice([1, 1, 1, 2, 4])
    mbs = c.choice([1, 1, 2])
    dp = max(1, nodes * 8 // (tp * pp * cp))
    plan = {"nodes": nodes, "tp": tp, "pp": pp, "cp": cp, "vp": vp, "mbs": mbs, "gbs": dp * mbs * c.choice([1, 2, 3, 5, 8, pp, 2 * pp, 4 * pp]),
            "schedule": schedule, "sharding": c.choice(["none", "zero1", "zero1", "zero1", "zero2", "zero3", "zero3"]),
            "context": c.choice(["ring", "all_gather", "heads"])}
    if plan["sharding"] != "none" and c.random() < 0.2:
        plan["shard_group"] = c.choice([1, 2, 4, 8, 16])
    if c.random() < 0.15:
        plan["ep"], plan["etp"] = c.choice([1, 2, 4, 8]), c.choice([0, 1, 2])
    for key in ("sequence_parallel", "reshard"):
        if c.random() < 0.2:
            plan[key] = False
    return "/plan=" + json.dumps(plan)


def damaged(data, chance):
    """The bytes with one to four random changes: flips, cuts, repeats, tokens, numbers, lines."""
    c = chance
    for _ in range(c.choice([1, 1, 2, 4])):
        n, kind = len(data), c.randrange(7)
        at = c.randrange(n + 1)
        if kind == 0 and n:
            at = min(at, n - 1)
            data = data[:at] + bytes([c.randrange(256)]) + data[at + 1:]
        elif kind == 1:
            data = data[:at] + data[min(n, at + c.choice([1, 2, 10, 100, 10000])):]
        elif kind == 2:
            data = data[:at] + data[at:at + c.choice([1, 10, 200])] * c.choice([2, 3, 200]) + data[at:]
        elif kind == 3:
            data = data[:at] + c.choice(TOKENS) + data[at:]
        elif kind == 4:
            numbers = list(re.finditer(rb"-?\d+(\.\d+)?", data))
            if numbers:
                m = c.choice(numbers)
                data = data[:m.start()] + f"{c.choice(NUMBERS):g}".encode() + data[m.end():]
        else:
            lines = data.split(b"\n")
            i, j = c.randrange(len(lines)), c.randrange(len(lines))
            if kind == 5:
                lines[i], lines[j] = lines[j], lines[i]
            else:
                del lines[i]
            data = b"\n".join(lines)
    return data
