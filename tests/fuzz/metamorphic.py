#!/usr/bin/env python3
"""Pairs of runs that differ in one thing, whose effect has a known sign: a faster link never makes a step longer.

    metamorphic.py --program build/release/bin/trainwatt [--seed 1] [--pairs 200]

Bases are random plans on shipped scenarios; pairs whose base or change is refused or does not fit are drawn again. An answer
against its sign is printed with both commands, and so is a change that does nothing where it has to, or a step that does not
react while `trainwatt compare` does not say why; the exit code is 1 then.
"""
import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

from grammar import odd_plan  # noqa: E402
from held import Runner  # noqa: E402

STEP, TIME, DC, AC, BUILDING = "step/time_s", "run/time_to_train_s/mean", "energy/nodes_dc_j", "energy/total_ac_j", "energy/facility_j"
MEMORY, CARBON = "memory/per_gpu_bytes", "carbon/kg_co2e"
KEPT, DOWN, UP, LESS, MORE = "as it was", "not more", "not less", "less", "more"
C, A = "/cluster", "/cluster/node/accelerator"
# What is set for the one and for the other, and what must happen to outputs.
CHANGES = {
    "faster uplinks": (f"{C}/fabric/uplink_bandwidth=400 Gbit/s", f"{C}/fabric/uplink_bandwidth=800 Gbit/s", {STEP: DOWN, MEMORY: KEPT}),
    "slower adapters": (f"{C}/node/nic_bandwidth=400 Gbit/s", f"{C}/node/nic_bandwidth=200 Gbit/s", {STEP: UP, MEMORY: KEPT}),
    "shorter hops": (f"{C}/fabric/hop_latency=600 ns", f"{C}/fabric/hop_latency=100 ns", {STEP: DOWN}),
    "more memory bandwidth": (f"{A}/copy_bandwidth=2.5 TB/s", f"{A}/copy_bandwidth=3.5 TB/s", {STEP: DOWN, MEMORY: KEPT}),
    "more memory": (f"{A}/memory=80 GiB", f"{A}/memory=141 GiB", {STEP: KEPT, MEMORY: KEPT, DC: KEPT}),
    "a lower board limit": (f"{A}/board_limit=700 W", f"{A}/board_limit=450 W", {STEP: UP, "power/node_dc_w/steady": DOWN}),
    "a faster host": (f"{C}/hosts/launch_speed=1", f"{C}/hosts/launch_speed=2", {STEP: DOWN}),
    "dearer kernels to issue": ("/software/host_per_operation=5 us", "/software/host_per_operation=40 us", {STEP: UP, MEMORY: KEPT}),
    "quiet devices": (f"{C}/hosts/noise/device_sigma=0.02", f"{C}/hosts/noise/device_sigma=0", {STEP: DOWN}),
    "stalls of hosts": (f"{C}/hosts/noise={{\"stalls_per_hour\": 0, \"stall_mean\": \"0.5 s\"}}",
                        f"{C}/hosts/noise={{\"stalls_per_hour\": 200, \"stall_mean\": \"0.5 s\"}}", {STEP: UP}),
    "a lower PUE": ("/site/pue=1.4", "/site/pue=1.1", {STEP: KEPT, DC: KEPT, AC: KEPT, BUILDING: LESS, CARBON: LESS}),
    "cleaner power": ("/site/carbon_intensity=0.4 kg/kWh", "/site/carbon_intensity=0.1 kg/kWh", {BUILDING: KEPT, CARBON: LESS}),
    "rectifiers that lose more": (f"{C}/power_delivery/rectifier/proportional_loss=0.02", f"{C}/power_delivery/rectifier/proportional_loss=0.06",
                                  {STEP: KEPT, DC: KEPT, AC: MORE}),
    "a longer run": ("/run={\"steps\": 20}", "/run={\"steps\": 60}", {TIME: MORE, DC: MORE, CARBON: MORE}),
    "a longer start": ("/software/init=10 s", "/software/init=100 s", {STEP: KEPT, DC: UP}),
    "full recomputation": ("/training/recompute=selective", "/training/recompute=full", {MEMORY: DOWN, STEP: UP}),
    "idle GPUs that draw more": (f"{A}/power/idle=50 W", f"{A}/power/idle=90 W", {STEP: KEPT, DC: UP}),
    "kernels hurt by exchanges": ("/software/kernel_beside_exchange=1", "/software/kernel_beside_exchange=1.5", {STEP: UP}),
    "a longer fixed part": ("/software/step_fixed=10 ms", "/software/step_fixed=60 ms", {STEP: MORE}),
    "slower attention": ("/software/attention_speed=1", "/software/attention_speed=0.7", {STEP: UP, MEMORY: KEPT}),
    "dearer optimizer": ("/software/optimizer_bytes_per_parameter=20", "/software/optimizer_bytes_per_parameter=60", {STEP: UP, MEMORY: KEPT}),
    "more workspace": ("/software/workspace=2 GB", "/software/workspace=6 GB", {STEP: KEPT, MEMORY: MORE}),
    "faster adapters, one way to run": (f"{C}/node/nic_bandwidth=400 Gbit/s", f"{C}/node/nic_bandwidth=800 Gbit/s", {STEP: DOWN, MEMORY: KEPT}),
    "fewer samples a step, as many in all": (None, None, {TIME: UP}),
    "zero1 instead of none": (None, None, {MEMORY: DOWN}),
}
CHANCE = {"quiet devices": 0.0135}  # the mean of 20 steps of 2 % noise stands off by chance: three standard errors
# A library that has one algorithm and protocol for each operation: what is left is how exchanges share links.
ONE_WAY = "/software/collectives=" + json.dumps({"use": "models/collectives/nccl-2.27.json", "algorithms": {
    "tree": None, "nvls": None, "nvls_tree": None, "collnet": None, "ring": {"ll": None, "ll128": None}, "p2p": {"ll": None}}})
TIGHT = {"faster adapters, one way to run": 1e-6}
SLACK = 2e-3  # of a time or what follows from it: choices of algorithms by bytes, rounding of what meets in an event


def value(result, path):
    for key in path.split("/"):
        result = result.get(key) if isinstance(result, dict) else None
    return result


def wrong(sign, before, after, path, by_chance=0.0, allowed=SLACK):
    if before is None or after is None:
        return before is not after
    slack = 1e-9 * max(abs(before), abs(after)) if path == MEMORY else (allowed + by_chance) * max(abs(before), abs(after))
    return {KEPT: abs(after - before) > 1e-6 * max(abs(before), abs(after)), DOWN: after > before + slack, UP: after < before - slack,
            LESS: after >= before, MORE: after <= before}[sign]


def reason(run, folder, results):
    """"" or what compare says, where it does not say why nothing moves."""
    names = [os.path.join(folder, n) for n in ("a.json", "b.json")]
    for path, (result, _) in zip(names, results):
        with open(path, "w", encoding="utf-8") as f:
            json.dump([result], f)
    code, out, err = run(["compare"] + names)
    return "" if code == 0 and "stays as it was" in out else out + err


def pair(name, plan, scenario):
    """Settings of both sides, or None where the change has no meaning."""
    one, other, _ = CHANGES[name]
    p = json.loads(plan.split("=", 1)[1])
    if name.startswith("fewer samples"):
        q = dict(p, gbs=p["gbs"] * 2)
        return ["/plan=" + json.dumps(q), "/run={\"samples\": %d}" % (p["gbs"] * 40)], [plan, "/run={\"samples\": %d}" % (p["gbs"] * 40)]
    if name in TIGHT:
        return [plan, ONE_WAY, one], [plan, ONE_WAY, other]
    if name.startswith("zero1"):
        p.pop("shard_group", None)
        return ["/plan=" + json.dumps(dict(p, sharding="none"))], ["/plan=" + json.dumps(dict(p, sharding="zero1"))]
    return [plan, one], [plan, other]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--program", required=True)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--pairs", type=int, default=200)
    a.add_argument("--seconds", type=float, default=1e9, help="no new pair after so long")
    a.add_argument("--only", default="")
    a = a.parse_args()
    chance, run = random.Random(a.seed), Runner(os.path.abspath(a.program), ROOT, 60)
    scenarios = ["scenarios/llama3.1-pretraining.json"] * 3 + ["scenarios/mixtral-8x7b.json", "scenarios/smc-llama2-70b-lora-8n.json"]
    done, faults, moved, drawn, unmoved = 0, 0, {}, 0, 0
    folder = tempfile.mkdtemp()
    names = [n for n in CHANGES if a.only in n]
    end = time.monotonic() + a.seconds
    while done < a.pairs and drawn < 60 * a.pairs and time.monotonic() < end:
        drawn += 1
        scenario, name, plan = chance.choice(scenarios), names[done % len(names)], odd_plan(chance)
        sides, results = pair(name, plan, scenario), []
        full = ["--set", "/training/recompute=full"] if name != "full recomputation" and chance.random() < 0.8 else []
        for side in sides:
            words = ["run", scenario, "-q", "--json", "-"] + full + [w for s in side for w in ("--set", s)]
            code, out, err = run(words)
            if code != 0:
                break
            results.append((json.loads(out)[0], words))
        if len(results) < 2:
            continue
        done += 1
        signs = CHANGES[name][2]
        if signs.get(STEP) in (UP, DOWN) and value(results[0][0], STEP) == value(results[1][0], STEP):
            unmoved += 1
            said = reason(run, folder, results)
            if said:
                faults += 1
                print(f"{name}: the step does not react, and compare does not say why: {said}\n  ", " ".join(f"'{w}'" for w in results[0][1]))
        for path, sign in signs.items():
            before, after = (value(r, path) for r, _ in results)
            moved.setdefault(name, {}).setdefault(path, []).append(before != after)
            if wrong(sign, before, after, path, CHANCE.get(name, 0.0), TIGHT.get(name, SLACK)):
                faults += 1
                print(f"{name}: {path} {before} -> {after}, should be {sign}\n  ", " ".join(f"'{w}'" for w in results[0][1]), "\n  ",
                      " ".join(f"'{w}'" for w in results[1][1]), flush=True)
    for name, paths in moved.items():
        print(f"{name:40}", ", ".join(f"{p} moved in {sum(m)} of {len(m)}" for p, m in paths.items()))
    shutil.rmtree(folder)
    print(f"seed {a.seed}: {done} pairs of {drawn} drawn, {faults} against their sign or without a reason; {unmoved} steps did not react")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
