#!/usr/bin/env python3
"""Measure the peak memory of steps of other laboratories again, each in a process of its own, on one GPU.

  measure_alone.py train_steps.csv... > steps.csv     the rows of those files with what each rank's allocator held

A rank is one process with PyTorch's fake process group, whose exchanges allocate as NCCL's do and move nothing; DDP, whose
reducer wants a real one, is a group of one rank. Needs PyTorch 2.11 with CUDA, measure_gpu.py and measure_memory.py beside it.
--left instead: what stays of a model that a process has deleted. --replay instead: the same rows one after the other in one process
for each way of running, as those laboratories did, with what it holds beside each row's own step.
"""
import csv
import gc
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import measure_gpu  # noqa: E402
import measure_memory  # noqa: E402
import memory_networks  # noqa: E402
from memory_networks import BF16  # noqa: E402

empty_cache = torch.cuda.empty_cache


def settle():
    """Buckets that a step replaced go when NCCL's watchdog has seen their works and Python has collected."""
    time.sleep(1)
    gc.collect()
    empty_cache()


def join(real, rank, ranks):
    torch.cuda.set_device(0)
    if real:
        dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{29000 + os.getpid() % 1000}", rank=0, world_size=1,
                                device_id=torch.device("cuda", 0))
    else:
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        dist.all_to_all_single(y, x)
        return y

    @staticmethod
    def backward(ctx, g):
        return Exchange.forward(ctx, g.contiguous())


def exchange_tokens(ranks):
    """Experts over ranks: rows go before the first grouped product and come back after the second."""
    product, calls, make = torch._grouped_mm, [0], memory_networks.Experts.__init__

    def grouped(a, b, ends):
        calls[0] += 1
        return product(Exchange.apply(a), b, ends) if calls[0] % 2 else Exchange.apply(product(a, b, ends))

    def share(self, hidden, ffn, experts, chosen):
        make(self, hidden, ffn, experts // ranks, chosen)
        self.router = torch.nn.Linear(hidden, experts, bias=False, device="cuda", dtype=BF16)
    torch._grouped_mm, memory_networks.Experts.__init__ = grouped, share


def shard_in_groups(groups, size):
    import torch.distributed.fsdp as fsdp
    mesh = dist.device_mesh.init_device_mesh("cuda", (groups, size), mesh_dim_names=("copies", "shards"))
    whole = fsdp.fully_shard
    fsdp.fully_shard = lambda module, **options: whole(module, mesh=mesh, **options)


def pipeline(row, rank):
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import get_schedule_class
    n, pp, vp, ga = (int(row[k]) for k in ("layers", "pp", "vp", "microbatches"))
    hidden, heads, chunks = int(row["hidden"]), int(row["heads"]), pp * vp
    shape = (int(row["micro_batch"]), int(row["seq"]), hidden)
    mine = [rank] if vp == 1 else [rank, chunks - 1 - rank if "V" in row["schedule"] else rank + pp]

    def random(count):
        return torch.randn(count * shape[0], *shape[1:], device="cuda", dtype=BF16)

    def chunk(i):
        layers = [measure_gpu.Layer(hidden, heads, int(row["kv_heads"]), int(row["ffn"]), hidden // heads) for _ in range(n // chunks)]
        return PipelineStage(torch.nn.Sequential(*layers), i, chunks, torch.device("cuda", 0), input_args=(random(1),),
                             output_args=(random(1),))
    stages = [chunk(i) for i in mine]
    schedule = get_schedule_class(row["schedule"])(stages[0] if vp == 1 else stages, ga, loss_fn=lambda y, t: y.float().mean())
    optimizer = torch.optim.AdamW([p for s in stages for p in s.submod.parameters()], lr=1e-5, fused=True)
    inputs = (random(ga),) if 0 in mine else ()
    wanted = {"target": random(ga), "losses": []} if chunks - 1 in mine else {}
    for i in range(4):
        if i == 2:
            torch.cuda.synchronize()
            settle()
            torch.cuda.reset_peak_memory_stats()
        schedule.step(*inputs, **wanted)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def replicated(row):
    return row["parallel"] == "DDP" or (row["parallel"] == "TP+DDP" and int(row["dp"]) > 1)


def case_of(row):
    kind, tp = row["parallel"], int(row["tp"])
    return dict(id=row["id"], kind="DDP" if replicated(row) else "FSDP2" if kind == "HSDP" else kind, view=True, tp=tp, talk=tp > 1,
                layers=int(row["layers"]), hidden=int(row["hidden"]), heads=int(row["heads"]), kv=int(row["kv_heads"]),
                ffn=int(row["ffn"]), seq=int(row["seq"]), mbs=int(row["micro_batch"]), ga=int(row["microbatches"]),
                lora=int(row["lora_rank"]), recompute=row.get("recompute", "none"), compiled=row.get("compiled") == "1",
                experts=int(row.get("experts") or 0), top=int(row.get("experts_per_token") or 0))


def one(row, rank):
    """Peaks of allocated and reserved bytes."""
    kind, dp = row["parallel"], int(row["dp"])
    join(replicated(row), rank, int(row["gpus"]))
    if kind == "PP":
        return pipeline(row, rank)
    if kind == "EP":
        exchange_tokens(int(row["ep"]))
    if kind == "HSDP":
        shard_in_groups(dp // int(row["shard_group"]), int(row["shard_group"]))
    torch.cuda.empty_cache = settle
    out = {name: [] for name in measure_memory.COLUMNS}
    measure_memory.run_case(case_of(row), 0, int(row["gpus"]), out)
    return out["steps"][0]["peak_bytes"], out["steps"][0]["reserved_peak_bytes"]


def apart(work, *arguments):
    """What `work` returns in a process of its own, as text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, " ".join(str(v) for v in work(*arguments)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def left(kind, ranks, layers, real):
    """MiB still allocated after each of five models of one kind was deleted, and after a collection."""
    join(real, 0, ranks)
    told = []
    for i in range(5):
        measure_memory.run_case(dict(measure_memory.L8B, id=str(i), kind=kind, view=True, layers=layers, seq=512), 0, ranks,
                                {name: [] for name in measure_memory.COLUMNS})
        told.append(torch.cuda.memory_allocated() / 2**20)
    gc.collect()
    return told + [torch.cuda.memory_allocated() / 2**20]


def replay(rows, alone, real, ranks, steps):
    """Rows one after the other in this process, each deleted, nothing collected: what is left when a row begins, and what its steps
    hold beside `alone`, the peaks of steps.csv."""
    join(real, 0, ranks)
    exchanges = False
    for row in rows:
        left = torch.cuda.memory_allocated()
        if row["parallel"] == "EP" and not exchanges:
            exchanges = True
            exchange_tokens(int(row["ep"]))
        if row["parallel"] == "HSDP":
            shard_in_groups(int(row["dp"]) // int(row["shard_group"]), int(row["shard_group"]))
        case = case_of(row)
        model = measure_memory.build(case, 0, ranks)
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=True)
        x, g = (torch.randn(case["mbs"], case["seq"], case["hidden"], device="cuda", dtype=BF16) for _ in range(2))
        for i in range(steps):
            if i == 3:
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            model(x).backward(g)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        own, measured = int(alone[row["id"]]["peak_bytes"]), int(alone[row["id"]]["row_bytes"])
        print(row["id"], ranks, steps, *(round(b / 2**20, 2) for b in (left, torch.cuda.max_memory_allocated() - own, measured - own)),
              gc.get_stats()[2]["collections"], sep=",", flush=True)
        del model, optimizer, x, g
        torch.cuda.empty_cache()
    return ()


def replays(steps_csv, *paths):
    """Rows of one process: plain and replicated ones, sharded ones of two ranks, those of gpu_lab_3 on two and on four. Pipelines leave
    nothing; replicated rows of gpu_lab_3 want another process group than their neighbours' and are left out."""
    rows = {row["id"]: row for path in paths for row in csv.DictReader(open(path))}
    alone = {row["row"]: row for row in csv.DictReader(open(steps_csv))}
    print("row,ranks,steps,left_mib,beside_mib,row_beside_mib,full_collections", flush=True)
    for steps in (6, 50):
        for begin, real, ranks, ids in (("lab-", True, 1, "01 02 03 04 05 07 09 10 11 12 13 16 18"), ("lab-", False, 2, "32 34 36"),
                                        ("lab3-", False, 2, "c01 c03 m01 m02"), ("lab3-", False, 4, "d01 d03 d05 e01 e02")):
            apart(replay, [rows[begin + i] for i in ids.split()], alone, real, ranks, steps)


def main():
    if sys.argv[1:2] == ["--replay"]:
        replays(*sys.argv[2:])
        return
    if sys.argv[1:] == ["--left"]:
        for kind, ranks, layers, real in (("single", 1, 4, False), ("FSDP2", 4, 8, False), ("DDP", 1, 4, True)):
            print(kind, ranks, layers, apart(left, kind, ranks, layers, real), flush=True)
        return
    writer = None
    for path in sys.argv[1:]:
        for row in csv.DictReader(open(path)):
            if row["parallel"] == "TP+SP":
                continue
            ranks = range(int(row["pp"])) if row["parallel"] == "PP" else (0,)
            told = [apart(one, row, rank).split() for rank in ranks]
            cells = {"row": row["id"], "peak_bytes_each": " ".join(t[0] for t in told if t),
                     "reserved_bytes_each": " ".join(t[1] for t in told if t)}
            if writer is None:
                writer = csv.DictWriter(sys.stdout, list(cells), lineterminator="\n")
                writer.writeheader()
            writer.writerow(cells)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
