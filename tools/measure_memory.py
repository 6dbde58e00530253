#!/usr/bin/env python3
"""Measure where a training step's GPU memory goes, as CSV files for TrainWatt's memory model.

Needs PyTorch 2.6 or newer with CUDA and measure_gpu.py and memory_networks.py beside it; one GPU, or two for the sharded and replicated steps.

  measure_memory.py --out memory_lab     writes steps.csv, saved.csv, trace.csv, device.csv (about 3 minutes on two H100)

steps.csv   a case: what is allocated after a step (weights, states, buckets), the peak of the first step and of later ones,
            what the allocator reserved, and what the device lost beside that (context, libraries, communicators)
saved.csv   what autograd keeps of one layer after a forward pass: the node of the graph, its attribute, shape, type, bytes;
            `first` 0: the same storage is kept by an earlier row too
trace.csv   one step, operation by operation: bytes allocated before and after, and the most inside
device.csv  bytes of the device that are gone beside the allocator's, after each of: context, products, attention, NCCL
"""
import argparse
import csv
import gc
import os
import sys
import traceback

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import measure_gpu  # noqa: E402
from memory_networks import BF16, ExpertLayer, Language, Lora  # noqa: E402
COLUMNS = {
    "steps": "id,gpu,gpus,kind,layers,hidden,heads,kv_heads,ffn,vocabulary,experts,experts_per_token,seq,micro_batch,microbatches,"
             "tp_shard,lora_rank,recompute,compiled,option,left_bytes,weights_bytes,after_step_bytes,peak_first_bytes,peak_bytes,"
             "reserved_peak_bytes,device_used_bytes",
    "saved": "id,layer,node,attribute,shape,type,bytes,first",
    "trace": "id,index,phase,op,shape,before_bytes,after_bytes,most_bytes",
    "device": "gpu,gpus,after,used_beside_allocator_bytes",
}


class Trace(TorchDispatchMode):
    """Bytes before and after each operation, and the most inside it."""

    def __init__(self):
        super().__init__()
        self.rows, self.phase = [], "forward"

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        out = func(*args, **(kwargs or {}))
        after, most = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        shape = "x".join(str(n) for n in first.shape) if isinstance(first, torch.Tensor) else ""
        if after != before or most != before:
            self.rows.append((self.phase, str(func).replace(".default", ""), shape, before, after, most))
        return out


def saved_rows(output, parameters):
    """What the graph behind `output` keeps, from the last layer to the first."""
    owners = set()
    for p in parameters:
        try:
            owners.add(p.untyped_storage().data_ptr())
        except Exception:  # noqa: BLE001: a sharded parameter has no storage of its own
            pass
    seen, nodes, todo, rows = set(), set(), [output.grad_fn], []
    while todo:
        node = todo.pop(0)
        if node is None or node in nodes:
            continue
        nodes.add(node)
        kept = [(a, getattr(node, a, None)) for a in dir(node) if a.startswith("_saved_") and not a.startswith("_saved_self_sym")]
        if hasattr(node, "saved_tensors"):
            kept += [(f"saved_{i}", t) for i, t in enumerate(node.saved_tensors)]
        for attribute, t in kept:
            if isinstance(t, torch.Tensor) and t.is_cuda and t.untyped_storage().nbytes() > 0:
                at = t.untyped_storage().data_ptr()
                if at not in owners:
                    rows.append((node.name(), attribute, "x".join(str(n) for n in t.shape), str(t.dtype).replace("torch.", ""),
                                 t.untyped_storage().nbytes(), int(at not in seen)))
                    seen.add(at)
        todo += [n for n, _ in node.next_functions]
    return rows


def build(c, rank, world):
    kind = c["kind"]
    dim = c["hidden"] // c["heads"]
    if c.get("vocabulary"):
        model = Language(c, torch.float32 if kind == "FSDP2" else BF16)
    elif c.get("experts"):
        model = torch.nn.Sequential(*[ExpertLayer(c["hidden"], c["heads"], c["kv"], c["ffn"], dim, c["experts"], c["top"])
                                      for _ in range(c["layers"])])
    else:
        tp = c.get("tp", 1)
        model = torch.nn.Sequential(*[measure_gpu.Layer(c["hidden"], c["heads"], c["kv"], c["ffn"], dim, tp, False, c.get("talk", False))
                                      for _ in range(c["layers"])])
    if c.get("lora"):
        model.requires_grad_(False)
        for layer in model:
            layer.qkv, layer.proj = Lora(layer.qkv, c["lora"]), Lora(layer.proj, c["lora"])
    if c.get("compiled"):
        for layer in model:
            layer.compile()
    if kind == "DDP":
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=c.get("view", False))
    if kind == "FSDP2":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        options = {"reshard_after_forward": c.get("reshard", True)}
        if c.get("vocabulary"):
            options["mp_policy"] = MixedPrecisionPolicy(param_dtype=BF16, reduce_dtype=torch.float32)
            fully_shard(model.table, **options)
            for block in model.blocks:
                fully_shard(block, **options)
            fully_shard([model.norm, model.head], **dict(options, reshard_after_forward=False))
        else:
            for layer in model:
                fully_shard(layer, **options)
        fully_shard(model, **options)
    return model


def run_case(c, rank, world, out):
    torch.cuda.synchronize()
    left = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    model = build(c, rank, world)
    weights = torch.cuda.memory_allocated() - left
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=c.get("fused", True), foreach=None if c.get("fused", True) else True)
    batch, seq, hidden = c.get("mbs", 1), c["seq"], c["hidden"]
    if c.get("vocabulary"):
        x = torch.randint(c["vocabulary"], (batch, seq), device="cuda")
        target = torch.randint(c["vocabulary"], (batch * seq,), device="cuda")
    else:
        x, g = torch.randn(batch, seq, hidden, device="cuda", dtype=BF16), torch.randn(batch, seq, hidden, device="cuda", dtype=BF16)
    ga = c.get("ga", 1)
    kept = []

    def forward():
        if c.get("recompute") == "full" and not c.get("vocabulary"):
            y = x
            for layer in model:
                y = checkpoint(layer, y, use_reentrant=False)
            return y
        return model(x)

    def step(trace=None, saved=False):
        for i in range(ga):
            last = i == ga - 1
            quiet = model.no_sync() if c["kind"] == "DDP" and not last else None
            if quiet:
                quiet.__enter__()
            if trace:
                trace.phase = f"forward {i}"
            y = forward()
            if saved and i == 0:
                kept.extend(saved_rows(y, model.parameters()))
            if c.get("vocabulary"):
                y = F.cross_entropy(y.flatten(0, 1).float(), target)
            if trace:
                trace.phase = f"backward {i}"
            y.backward(*(() if c.get("vocabulary") else (g,)))
            del y
            if quiet:
                quiet.__exit__(None, None, None)
        if trace:
            trace.phase = "optimizer"
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    torch.cuda.synchronize()
    first = torch.cuda.max_memory_allocated()
    step(saved=bool(c.get("saved")))
    step()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    after = torch.cuda.memory_allocated()
    step()
    step()
    torch.cuda.synchronize()
    peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    free, total = torch.cuda.mem_get_info()
    used = total - free - torch.cuda.memory_reserved()
    if c.get("trace"):
        trace = Trace()
        with trace:
            step(trace)
        torch.cuda.synchronize()
        out["trace"] += [dict(zip(COLUMNS["trace"].split(","), (c["id"], i, *r))) for i, r in enumerate(trace.rows)]
    out["saved"] += [dict(zip(COLUMNS["saved"].split(","), (c["id"], "", *r))) for r in kept]
    out["steps"].append({
        "id": c["id"], "gpu": measure_gpu.short_name(torch.cuda.get_device_name(rank)), "gpus": world, "kind": c["kind"],
        "layers": c["layers"], "hidden": hidden, "heads": c["heads"], "kv_heads": c["kv"], "ffn": c["ffn"],
        "vocabulary": c.get("vocabulary", 0), "experts": c.get("experts", 0), "experts_per_token": c.get("top", 0), "seq": seq,
        "micro_batch": batch, "microbatches": ga, "tp_shard": c.get("tp", 1), "lora_rank": c.get("lora", 0),
        "recompute": c.get("recompute", "none"), "compiled": int(c.get("compiled", False)), "option": c.get("option", ""),
        "left_bytes": left, "weights_bytes": weights, "after_step_bytes": after, "peak_first_bytes": first, "peak_bytes": peak,
        "reserved_peak_bytes": reserved, "device_used_bytes": used})


L8B = dict(hidden=4096, heads=32, kv=8, ffn=14336)
L70B = dict(hidden=8192, heads=64, kv=8, ffn=28672)
L1B = dict(hidden=2048, heads=16, kv=16, ffn=5504)
TT = dict(L8B, vocabulary=128256, kind="FSDP2")
MOE = dict(hidden=2048, heads=16, kv=4, ffn=1024, experts=64, top=8)
ONE = [
    dict(id="m6-01", kind="single", layers=4, seq=4096, trace=True, saved=True, **L8B),
    dict(id="m6-02", kind="single", layers=4, seq=8192, **L8B),
    dict(id="m6-03", kind="single", layers=4, seq=1024, trace=True, **L8B),
    dict(id="m6-04", kind="single", layers=12, seq=2048, mbs=2, saved=True, **L1B),
    dict(id="m6-05", kind="single", layers=8, seq=8192, recompute="full", trace=True, **L8B),
    dict(id="m6-06", kind="single", layers=8, seq=4096, compiled=True, saved=True, **L8B),
    dict(id="m6-07", kind="single", layers=8, seq=4096, trace=True, saved=True, **MOE),
    dict(id="m6-08", kind="single", layers=4, seq=4096, ga=4, trace=True, **L8B),
    dict(id="m6-09", kind="TP shard", layers=4, seq=8192, tp=4, lora=16, trace=True, saved=True, **L70B),
    dict(id="m6-10", kind="TP shard", layers=8, seq=8192, tp=4, lora=16, **L70B),
    dict(id="m6-11", kind="TP shard", layers=4, seq=4096, tp=4, **L70B),
    dict(id="m6-12", kind="TP shard", layers=4, seq=4096, tp=4, trace=True, **L8B),
    dict(id="m6-13", kind="single", layers=4, seq=1024, option="foreach AdamW", fused=False, trace=True, **L8B),
    dict(id="m6-14", kind="single", layers=2, seq=4096, vocabulary=128256, saved=True, trace=True, **L8B),
]
TWO = [
    dict(id="m6-21", kind="DDP", layers=4, seq=4096, option="buckets apart", trace=True, **L8B),
    dict(id="m6-22", kind="DDP", layers=4, seq=4096, option="gradients in buckets", view=True, trace=True, **L8B),
    dict(id="m6-23", kind="DDP", layers=8, seq=512, option="buckets apart", **L8B),
    dict(id="m6-24", kind="DDP", layers=8, seq=4096, ga=4, option="buckets apart", **L8B),
    dict(id="m6-25", kind="FSDP2", layers=8, seq=4096, trace=True, **L8B),
    dict(id="m6-26", kind="FSDP2", layers=16, seq=4096, **L8B),
    dict(id="m6-27", kind="FSDP2", layers=4, seq=4096, **L70B),
    dict(id="m6-28", kind="FSDP2", layers=8, seq=512, trace=True, **L8B),
    dict(id="m6-29", kind="FSDP2", layers=8, seq=4096, option="no reshard", reshard=False, trace=True, **L8B),
    dict(id="m6-30", layers=4, seq=8192, trace=True, saved=True, **TT),
    dict(id="m6-31", layers=8, seq=8192, recompute="alternate", trace=True, **TT),
    dict(id="m6-32", layers=8, seq=8192, recompute="full", trace=True, **TT),
    dict(id="m6-33", kind="TP", layers=8, seq=4096, tp=2, talk=True, hidden=3584, heads=28, kv=4, ffn=18944),
    # The same without collecting what earlier cases left in reference cycles: gpu_lab's DDP rows in their order.
    dict(id="m6-41", kind="DDP", layers=4, seq=4096, option="collected", **L8B),
    dict(id="m6-42", kind="DDP", layers=4, seq=8192, option="uncollected", **L8B),
    dict(id="m6-43", kind="DDP", layers=8, seq=2048, mbs=2, option="uncollected", **L8B),
]


def device_rows(rank, world, rows):
    def note(after):
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        rows.append({"gpu": measure_gpu.short_name(torch.cuda.get_device_name(rank)), "gpus": world, "after": after,
                     "used_beside_allocator_bytes": total - free - torch.cuda.memory_reserved()})
    x = torch.zeros(1024, 1024, device="cuda", dtype=BF16)
    note("context")
    x = x @ x
    note("products")
    F.scaled_dot_product_attention(*[torch.zeros(1, 8, 1024, 128, device="cuda", dtype=BF16) for _ in range(3)], is_causal=True)
    note("attention")
    if world > 1:
        torch.distributed.all_reduce(x)
        note("NCCL all-reduce")
        torch.distributed.all_gather_into_tensor(torch.zeros(2048, 1024, device="cuda", dtype=BF16), x)
        y = torch.zeros(512, 1024, device="cuda", dtype=BF16)
        torch.distributed.reduce_scatter_tensor(y, x)
        note("NCCL gather and scatter")
        torch.distributed.all_to_all_single(torch.zeros_like(x), x)
        note("NCCL all-to-all")


def worker(rank, world, port, out_dir):
    torch.cuda.set_device(rank)
    if world > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(1234)
    rows = {name: [] for name in COLUMNS}
    device_rows(rank, world, rows["device"])
    for c in ONE if world == 1 else TWO:
        if c.get("option") != "uncollected":
            gc.collect()
        torch.cuda.empty_cache()
        try:
            run_case(c, rank, world, rows)
            if rank == 0:
                print(rows["steps"][-1], flush=True)
        except Exception:  # noqa: BLE001: the other cases count
            print(c["id"], traceback.format_exc()[-1500:], flush=True)
        torch._dynamo.reset()
        if rank == 0:
            for name, lines in rows.items():
                path = os.path.join(out_dir, f"{name}_{world}.csv")
                with open(path, "w", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS[name].split(","), lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(lines)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="DIR", default="memory_lab")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for world in (1, 2):
        if world <= torch.cuda.device_count():
            torch.multiprocessing.spawn(worker, (world, measure_gpu.free_port(), args.out), nprocs=world, join=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
