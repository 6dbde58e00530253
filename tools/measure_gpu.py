#!/usr/bin/env python3
"""Measure what one host's GPUs do, as CSV files for TrainWatt's kernel, network and power profiles.

Needs PyTorch 2.6 or newer with CUDA; nothing else (Triton comes with PyTorch; without it the fused kernels stay blank).
Reads the GPUs' energy counters and clocks; never changes a setting. One GPU: kernels, power, training steps. Two to eight:
collectives, interference and parallel steps too; the processes are started here, one a GPU.

  measure_gpu.py --out lab                        everything that these GPUs allow (about 20 minutes on one GPU)
  measure_gpu.py --out lab --quick                few shapes, short windows (about 2 minutes): does it all run?
  measure_gpu.py --out lab --only gemm,attention  some sections

Times are CUDA events: warm-up, then the median of several bursts with a pause between them, so that they are burst rates
below the board's power limit; sustained.csv and power.csv hold what remains of them at the limit.
"""
import argparse
import csv
import ctypes
import datetime
import gc
import json
import math
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
import traceback
import warnings

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # --help works without it
    torch = None
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

COLUMNS = {
    "gemm": "gpu,form,m,n,k,bf16_s,bf16_graph_s,fp8_e4m3_s",
    "attention": "gpu,batch,heads,seq,head_dim,mask,fwd_s,bwd_s",
    "attention_backends": "gpu,backend,batch,heads,kv_heads,q_seq,kv_seq,head_dim,mask,fwd_s,bwd_s",
    "memory_ops": "gpu,op,bytes_read_plus_written,seconds",
    "host_issue": "gpu,machine,op,kernels,host_s_each",
    "fp8_linear": "gpu,m,n,k,part,seconds",
    "collectives": "gpu,ranks,op,bytes,seconds",
    "collectives_graph": "gpu,ranks,op,bytes,seconds",
    "power": "gpu,phase,gpus,watts_each,watts_mean,sm_mhz_at_end,iterations_per_s",
    "sustained": "gpu,op,m,n,k,burst_s,sustained_s,watts_mean,sm_mhz_mean",
    "burst_length": "gpu,op,burst_length_s,seconds_each",
    "power_duty": "gpu,op,busy_share,op_s,watts_each,watts_mean,active_w_implied",
    "interference": "gpu,case,gemm_8192_bf16_s,all_reduce_256MiB_2ranks_s,watts_mean",
    "interference_tp": "gpu,ranks,kernel,collective,bytes,kernel_alone_s,kernel_both_s,collective_alone_s,collective_both_s,"
                       "watts_mean",
    "few_rows": "gpu,m,n,k,bf16_s,fp8_e4m3_s",
    "grouped": "gpu,experts,rows_each,n,k,form,seconds,loop_s",
    "permutation": "gpu,op,tokens,hidden,experts,top_k,bytes_read_plus_written,seconds,kernels,host_s",
    "expert_biases": "gpu,op,way,rows,hidden,inner,experts,seconds,kernels,host_s",
    "rotary_scaled": "gpu,way,tokens,heads,head_dim,seconds,kernels,host_s",
    "drop_over_capacity": "gpu,way,tokens,experts,top_k,seconds,kernels,host_s",
    "latent_rotary": "gpu,way,tokens,heads,seconds,kernels,host_s",
    "by_expert": "gpu,way,tokens,hidden,experts,top_k,seconds,kernels,host_s",
    "group_router": "gpu,way,tokens,experts,top_k,seconds,kernels,host_s",
    "attention_windows": "gpu,batch,heads,seq,head_dim,window,fwd_s,bwd_s",
    "attention_latent": "gpu,batch,heads,seq,head_dim,value_dim,fwd_s,bwd_s",
    "attention_long": "gpu,backend,heads,seq,head_dim,fwd_s,bwd_s",
    "joined_parts": "gpu,layers,way,parts,host_s,processor",
    "send_recv": "gpu,ranks,case,bytes,seconds,host_s",
    "train_steps": "id,gpu,gpus,parallel,tp,pp,vp,dp,schedule,layers,hidden,heads,kv_heads,ffn,seq,micro_batch,microbatches,"
                   "lora_rank,frozen_base,step_s,step_s_p95,fwd_s,watts_each,watts_mean,peak_mem_bytes",
}
COLUMNS["train_steps_graph"] = COLUMNS["train_steps"].replace("id,gpu,", "id,graph,precision,gpu,")
COLUMNS = {name: columns.split(",") for name, columns in COLUMNS.items()}

# name: (hidden, ffn, heads, kv heads, head dim, gated MLP, tensor parallel sizes)
NETWORKS = {
    "llama2-70b": (8192, 28672, 64, 8, 128, True, (1, 2, 4, 8)),
    "llama3-8b": (4096, 14336, 32, 8, 128, True, (1, 2, 4)),
    "llama3.1-405b": (16384, 53248, 128, 8, 128, True, (4, 8)),
    "gpt3-175b": (12288, 49152, 96, 96, 128, False, (4, 8)),
}


# ---------------------------------------------------------------------------------------------------------------------
# Power: NVML through ctypes, else nvidia-smi.

class Nvml:
    """Energy (J), SM clock (MHz) of one GPU. Energy is None where the counter is missing; then `watts` is sampled."""

    def __init__(self, index):
        self.lib = None
        props = torch.cuda.get_device_properties(index)
        self.uuid = "GPU-" + str(getattr(props, "uuid", ""))
        try:
            lib = ctypes.CDLL("libnvidia-ml.so.1")
            if lib.nvmlInit_v2() != 0:
                raise OSError("nvmlInit failed")
            handle = ctypes.c_void_p()
            if lib.nvmlDeviceGetHandleByUUID(self.uuid.encode(), ctypes.byref(handle)) != 0 and \
                    lib.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
                raise OSError("no NVML handle")
            self.lib, self.handle = lib, handle
        except (OSError, AttributeError):
            self.lib = None
        self.has_counter = self.energy() is not None

    def _get(self, name, kind, *before):
        if self.lib is None:
            return None
        value = kind()
        try:
            rc = getattr(self.lib, name)(self.handle, *before, ctypes.byref(value))
        except AttributeError:
            return None
        return value.value if rc == 0 else None

    def energy(self):
        mj = self._get("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong)
        return None if mj is None else mj * 1e-3

    def watts(self):
        mw = self._get("nvmlDeviceGetPowerUsage", ctypes.c_uint)
        if mw is not None:
            return mw * 1e-3
        return self._smi("power.draw")

    def sm_mhz(self):
        mhz = self._get("nvmlDeviceGetClockInfo", ctypes.c_uint, 1)
        return mhz if mhz is not None else self._smi("clocks.sm")

    def limit_w(self):
        mw = self._get("nvmlDeviceGetEnforcedPowerLimit", ctypes.c_uint)
        return mw * 1e-3 if mw is not None else self._smi("power.limit")

    def driver(self):
        if self.lib is not None:
            text = ctypes.create_string_buffer(96)
            if self.lib.nvmlSystemGetDriverVersion(text, 96) == 0:
                return text.value.decode()
        return ""

    def _smi(self, field):
        try:
            out = subprocess.run(["nvidia-smi", "--id=" + self.uuid, "--query-gpu=" + field, "--format=csv,noheader,nounits"],
                                 capture_output=True, text=True, timeout=5, check=True).stdout
            return float(out.split()[0])
        except (OSError, subprocess.SubprocessError, ValueError, IndexError):
            return None


class Meter:
    """Samples the energy counter and the SM clock in a thread; `window` gives means between two host times."""

    def __init__(self, index):
        self.nvml = Nvml(index)
        self.samples, self.clocks = [], []
        self.stop = threading.Event()
        self.thread = None

    def __enter__(self):
        self.samples, self.clocks = [], []
        self.stop.clear()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.stop.set()
        self.thread.join()

    def _run(self):
        last, joules, before, turn = None, 0.0, None, 0
        pause = 0.005 if self.nvml.lib is not None else 0.05
        while not self.stop.is_set():
            if self.nvml.has_counter:
                value = self.nvml.energy()
                now = time.perf_counter()
                if value is not None and value != last:  # the time of a change, not of a look: the counter moves in steps
                    if last is not None:
                        self.samples.append((now, value))
                    last = value
            else:
                power = self.nvml.watts()
                now = time.perf_counter()
                if power is not None:
                    joules += 0.0 if before is None else power * (now - before)
                    self.samples.append((now, joules))
                    before = now
            if turn % 4 == 0:
                mhz = self.nvml.sm_mhz()
                if mhz is not None:
                    self.clocks.append((now, mhz))
            turn += 1
            time.sleep(pause)

    def window(self, begin, end):
        """(mean W, mean SM MHz, SM MHz at the end); None where there are too few samples."""
        inside = [s for s in self.samples if begin <= s[0] <= end]
        watts = None
        if len(inside) >= 2 and inside[-1][0] - inside[0][0] > 0.4 * (end - begin):
            watts = (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])
        clocks = [c[1] for c in self.clocks if begin <= c[0] <= end]
        return watts, (statistics.fmean(clocks) if clocks else None), (clocks[-1] if clocks else None)


# ---------------------------------------------------------------------------------------------------------------------
# What a section sees.

class Fatal(Exception):
    """The CUDA context is gone: the section goes on in a new process, after the measurement that broke it."""


class Context:
    """One process of one section: rows and progress go to the parent, a failed measurement becomes a warning."""

    def __init__(self, name, rank, world, cfg, conn, skip):
        self.name, self.rank, self.world, self.cfg, self.conn, self.skip = name, rank, world, cfg, conn, skip
        self.index, self.total, self.late = 0, 0, False
        self.deadline = time.monotonic() + cfg["section_limit"]
        self.gpu = short_name(torch.cuda.get_device_name(rank))
        self.meter = Meter(rank)
        self.idle_w = None

    def plan(self, total):
        self.total = total

    def item(self, label):
        """Counts one measurement; False when it is to be skipped (done before a restart, or out of time)."""
        self.index += 1
        go = self.index > self.skip
        if go and time.monotonic() > self.deadline:
            go = False
            if not self.late:
                self.warn("time is up, the rest is left out")
            self.late = True
        if self.world > 1:
            go = bool(self.gather(go)[0])
        if go and self.rank == 0:
            self.conn.send(("item", self.index, self.total, label))
        if torch.cuda.memory_reserved() > 0.5 * torch.cuda.get_device_properties(self.rank).total_memory:
            gc.collect()
            torch.cuda.empty_cache()
        return go

    def row(self, file, **cells):
        if self.rank == 0:
            cells.setdefault("gpu", self.gpu)
            self.conn.send(("row", file, {k: show(k, v) for k, v in cells.items()}))

    def warn(self, text):
        self.conn.send(("warn", text))

    def attempt(self, label, function, *args, **kwargs):
        """function's value, or None and a warning."""
        try:
            value = function(*args, **kwargs)
            torch.cuda.synchronize()
            return value
        except Exception as error:  # noqa: BLE001: any failed measurement leaves a blank cell
            lines = str(error).strip().splitlines() or [""]
            self.warn(f"{label}: {type(error).__name__}: {lines[0][:200]}")
            if self.cfg["traces"]:
                self.warn(traceback.format_exc())
            del error
            try:
                torch.cuda.synchronize()
            except Exception as broken:
                raise Fatal(label) from broken
            gc.collect()
            torch.cuda.empty_cache()
            return None

    def gather(self, value):
        if self.world == 1:
            return [value]
        out = [None] * self.world
        torch.distributed.all_gather_object(out, value, group=self.cfg["gloo"])
        return out

    def bench(self, functions, graph=False):
        return bench(functions, self.cfg["burst"], self.cfg["bursts"], graph)


def short_name(name):
    match = re.search(r"\b(GB200|GB300|B200|B300|H100|H200|H800|H20|A100|A800|L40S|L40|L4|GH200)\b", name)
    return match.group(1) if match else name.replace(",", " ").replace("NVIDIA ", "")


def show(column, value):
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, float):
        if column.startswith("watts") or column == "active_w_implied":
            return f"{value:.1f}"
        if column in ("busy_share",):
            return f"{value:.4f}"
        if column.startswith("sm_mhz"):
            return f"{value:.0f}"
        return f"{value:.5g}"
    return str(value)


def join_each(values, digits):
    return " ".join("-" if v is None else f"{v:.{digits}f}" for v in values)


def mean_or_none(values):
    values = [v for v in values if v is not None]
    return statistics.fmean(values) if values else None


# ---------------------------------------------------------------------------------------------------------------------
# Timing.

def timed(functions, count):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for i in range(count):
        functions[i % len(functions)]()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3 / count


def capture(functions, count):
    """A CUDA graph of `count` calls on the current (side) stream."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode=capture_mode()):
        for i in range(count):
            functions[i % len(functions)]()
    return graph


def capture_mode():
    """NCCL's watchdog thread queries events at any time, which the global mode forbids."""
    return "thread_local" if torch.distributed.is_initialized() else "global"


def bench(functions, burst_s, bursts, graph=False):
    """Seconds per call: median of bursts. Several functions are taken in turn (input sets that defeat the cache)."""
    functions = [functions] if callable(functions) else list(functions)
    for function in functions[:3]:
        function()
    torch.cuda.synchronize()
    estimate = min(timed(functions, 2), timed(functions, 3))
    unit, keep = 1, None
    if graph:
        unit = max(1, min(100, math.ceil(0.004 / estimate)))
        unit = max(len(functions), unit // len(functions) * len(functions))
        keep = capture(functions, unit)
        functions = [keep.replay]
        keep.replay()
        estimate = timed(functions, 2) / unit
    count = max(3 if unit == 1 else 1, min(20000, round(burst_s / estimate / unit)))
    samples = []
    for _ in range(bursts):
        time.sleep(min(0.05, 0.7 * burst_s))
        samples.append(timed(functions, count) / unit)
    del keep
    return statistics.median(samples)


def sustain(ctx, iteration, seconds, warm=0.6):
    """Runs `iteration` without a gap. Returns (W, mean MHz, MHz at the end, iterations per second) of this rank's GPU."""
    iteration()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    iteration()
    torch.cuda.synchronize()
    batch = max(1, round(0.02 / max(1e-6, time.perf_counter() - begin)))
    marks = []

    def drive(until, floor):
        done = 0
        while time.perf_counter() < until or done < floor:
            for _ in range(batch):
                iteration()
            done += batch
            mark = torch.cuda.Event(enable_timing=True)
            mark.record()
            marks.append(mark)
            if len(marks) > 2:  # two batches ahead of the GPU: no gaps, and a host that knows where the GPU is
                marks.pop(0).synchronize()
        return done

    with ctx.meter as meter:
        if ctx.world > 1:
            ctx.gather(None)
        drive(time.perf_counter() + warm, 1)
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        first.synchronize()
        started = time.perf_counter()
        done = drive(started + seconds, 3)
        last.record()
        stopped = time.perf_counter()
        last.synchronize()
    watts, mhz, mhz_end = meter.window(started, stopped)
    return watts, mhz, mhz_end, done / (first.elapsed_time(last) * 1e-3)


def duty(ctx, op, op_s, share, seconds, period=0.02):
    """Runs op for a share of each period. Returns (busy share, seconds an op, W)."""
    count = max(1, round(share * period / op_s))
    period = count * op_s / share
    pairs = []
    with ctx.meter as meter:
        due = time.perf_counter()
        started, stop = due + 0.4, due + 0.4 + seconds
        while due < stop:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(count):
                op()
            end.record()
            end.synchronize()
            if due >= started:
                pairs.append(begin.elapsed_time(end) * 1e-3)
            due += period
            time.sleep(max(0.0, due - time.perf_counter()))
        stopped = time.perf_counter()
    watts, _, _ = meter.window(started, stopped)
    total = max(1e-9, stopped - started)
    return min(1.0, sum(pairs) / total), sum(pairs) / max(1, len(pairs)) / count, watts


# ---------------------------------------------------------------------------------------------------------------------
# Fused kernels in Triton, as training frameworks have them.

if triton is not None:
    @triton.jit
    def k_rms_fwd(x, w, y, rstd, C, eps, B: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        c = tl.arange(0, B)
        ok = c < C
        v = tl.load(x + row * C + c, mask=ok, other=0.0).to(tl.float32)
        r = 1.0 / tl.sqrt(tl.sum(v * v, 0) / C + eps)
        tl.store(rstd + row, r)
        tl.store(y + row * C + c, (v * r * tl.load(w + c, mask=ok, other=0.0).to(tl.float32)).to(y.dtype.element_ty), mask=ok)

    @triton.jit
    def k_rms_bwd(g, x, w, rstd, dx, dw, R, C, B: tl.constexpr):
        c = tl.arange(0, B)
        ok = c < C
        wv = tl.load(w + c, mask=ok, other=0.0).to(tl.float32)
        acc = tl.zeros([B], dtype=tl.float32)
        for row in range(tl.program_id(0), R, tl.num_programs(0)):
            at = row.to(tl.int64) * C + c
            gv = tl.load(g + at, mask=ok, other=0.0).to(tl.float32)
            r = tl.load(rstd + row)
            n = tl.load(x + at, mask=ok, other=0.0).to(tl.float32) * r
            acc += gv * n
            gw = gv * wv
            tl.store(dx + at, (r * (gw - n * (tl.sum(gw * n, 0) / C))).to(dx.dtype.element_ty), mask=ok)
        tl.store(dw + tl.program_id(0) * C + c, acc, mask=ok)

    @triton.jit
    def k_layer_fwd(x, w, b, y, mean, rstd, C, eps, B: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        c = tl.arange(0, B)
        ok = c < C
        v = tl.load(x + row * C + c, mask=ok, other=0.0).to(tl.float32)
        m = tl.sum(v, 0) / C
        d = tl.where(ok, v - m, 0.0)
        r = 1.0 / tl.sqrt(tl.sum(d * d, 0) / C + eps)
        tl.store(mean + row, m)
        tl.store(rstd + row, r)
        out = d * r * tl.load(w + c, mask=ok, other=0.0).to(tl.float32) + tl.load(b + c, mask=ok, other=0.0).to(tl.float32)
        tl.store(y + row * C + c, out.to(y.dtype.element_ty), mask=ok)

    @triton.jit
    def k_layer_bwd(g, x, w, mean, rstd, dx, dw, db, R, C, B: tl.constexpr):
        c = tl.arange(0, B)
        ok = c < C
        wv = tl.load(w + c, mask=ok, other=0.0).to(tl.float32)
        accw = tl.zeros([B], dtype=tl.float32)
        accb = tl.zeros([B], dtype=tl.float32)
        for row in range(tl.program_id(0), R, tl.num_programs(0)):
            at = row.to(tl.int64) * C + c
            gv = tl.load(g + at, mask=ok, other=0.0).to(tl.float32)
            r = tl.load(rstd + row)
            n = tl.where(ok, (tl.load(x + at, mask=ok, other=0.0).to(tl.float32) - tl.load(mean + row)) * r, 0.0)
            accw += gv * n
            accb += gv
            gw = gv * wv
            out = r * (gw - tl.sum(gw, 0) / C - n * (tl.sum(gw * n, 0) / C))
            tl.store(dx + at, out.to(dx.dtype.element_ty), mask=ok)
        tl.store(dw + tl.program_id(0) * C + c, accw, mask=ok)
        tl.store(db + tl.program_id(0) * C + c, accb, mask=ok)

    @triton.jit
    def k_swiglu_fwd(x, y, N, B: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        c = tl.program_id(1) * B + tl.arange(0, B)
        ok = c < N
        a = tl.load(x + row * 2 * N + c, mask=ok, other=0.0).to(tl.float32)
        u = tl.load(x + row * 2 * N + N + c, mask=ok, other=0.0).to(tl.float32)
        tl.store(y + row * N + c, (a * tl.sigmoid(a) * u).to(y.dtype.element_ty), mask=ok)

    @triton.jit
    def k_swiglu_bwd(g, x, dx, N, B: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        c = tl.program_id(1) * B + tl.arange(0, B)
        ok = c < N
        a = tl.load(x + row * 2 * N + c, mask=ok, other=0.0).to(tl.float32)
        u = tl.load(x + row * 2 * N + N + c, mask=ok, other=0.0).to(tl.float32)
        gv = tl.load(g + row * N + c, mask=ok, other=0.0).to(tl.float32)
        s = tl.sigmoid(a)
        tl.store(dx + row * 2 * N + c, (gv * u * s * (1.0 + a * (1.0 - s))).to(dx.dtype.element_ty), mask=ok)
        tl.store(dx + row * 2 * N + N + c, (gv * a * s).to(dx.dtype.element_ty), mask=ok)

    @triton.jit
    def k_rope(x, cos, sin, y, H: tl.constexpr, D: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        i = tl.arange(0, H * D)  # D: half the head dimension; H * D a power of two
        h = i // D
        d = i % D
        a = tl.load(x + row * 2 * H * D + h * 2 * D + d).to(tl.float32)
        b = tl.load(x + row * 2 * H * D + h * 2 * D + D + d).to(tl.float32)
        co = tl.load(cos + row * D + d)
        si = tl.load(sin + row * D + d)
        tl.store(y + row * 2 * H * D + h * 2 * D + d, (a * co - b * si).to(y.dtype.element_ty))
        tl.store(y + row * 2 * H * D + h * 2 * D + D + d, (b * co + a * si).to(y.dtype.element_ty))

    @triton.jit
    def k_xent_fwd(x, target, loss, lse, V, B: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        top = -1e30
        total = 0.0
        for start in range(0, V, B):
            c = start + tl.arange(0, B)
            v = tl.load(x + row * V + c, mask=c < V, other=-1e30).to(tl.float32)
            new = tl.maximum(top, tl.max(v, 0))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(v - new), 0)
            top = new
        out = top + tl.log(total)
        tl.store(lse + row, out)
        tl.store(loss + row, out - tl.load(x + row * V + tl.load(target + row)).to(tl.float32))

    @triton.jit
    def k_xent_bwd(x, target, lse, dx, V, scale, B: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        c = tl.program_id(1) * B + tl.arange(0, B)
        v = tl.load(x + row * V + c, mask=c < V, other=0.0).to(tl.float32)
        p = tl.exp(v - tl.load(lse + row))
        out = (p - tl.where(c == tl.load(target + row), 1.0, 0.0)) * scale
        tl.store(dx + row * V + c, out.to(dx.dtype.element_ty), mask=c < V)

    @triton.jit
    def k_cast(x, y, scale, amax, N, B: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
        v = tl.load(x + at, mask=at < N, other=0.0).to(tl.float32)
        tl.atomic_max(amax, tl.max(tl.abs(v), 0))
        tl.store(y + at, (v * tl.load(scale)).to(y.dtype.element_ty), mask=at < N)

    @triton.jit
    def k_cast_transpose(x, y, yt, scale, amax, R, C, BR: tl.constexpr, BC: tl.constexpr):
        r = tl.program_id(1).to(tl.int64) * BR + tl.arange(0, BR)
        c = tl.program_id(0).to(tl.int64) * BC + tl.arange(0, BC)
        ok = (r < R)[:, None] & (c < C)[None, :]
        v = tl.load(x + r[:, None] * C + c[None, :], mask=ok, other=0.0).to(tl.float32)
        tl.atomic_max(amax, tl.max(tl.max(tl.abs(v), 1), 0))
        q = (v * tl.load(scale)).to(y.dtype.element_ty)
        tl.store(y + r[:, None] * C + c[None, :], q, mask=ok)
        tl.store(yt + c[:, None] * R + r[None, :], tl.trans(q), mask=(c < C)[:, None] & (r < R)[None, :])

    CAST_TILE = [64, 128, 8]

    def cast_transpose(x, scale, amax, dtype, tile=None):
        """x [R, C] in BF16 -> (x * scale in FP8, its transpose, amax noted): one pass, delayed scaling."""
        rows, columns = x.shape
        y = torch.empty(rows, columns, dtype=dtype, device=x.device)
        yt = torch.empty(columns, rows, dtype=dtype, device=x.device)
        br, bc, warps = tile or CAST_TILE
        k_cast_transpose[(triton.cdiv(columns, bc), triton.cdiv(rows, br))](x, y, yt, scale, amax, rows, columns, br, bc,
                                                                            num_warps=warps)
        return y, yt

    def cast_only(x, scale, amax, dtype, y=None, block=8192, warps=8):
        y = torch.empty(x.shape, dtype=dtype, device=x.device) if y is None else y
        k_cast[(triton.cdiv(x.numel(), block),)](x, y, scale, amax, x.numel(), block, num_warps=warps)
        return y

    def tune_cast(x, scale, amax):
        """Picks the fastest tile for cast + transpose."""
        best = None
        for tile in ((64, 64, 4), (64, 128, 8), (128, 64, 8), (128, 128, 8), (32, 128, 4), (128, 32, 4), (64, 64, 8)):
            try:
                cast_transpose(x, scale, amax, torch.float8_e4m3fn, tile)
                torch.cuda.synchronize()
                seconds = timed([lambda t=tile: cast_transpose(x, scale, amax, torch.float8_e4m3fn, t)], 20)
            except Exception:  # noqa: BLE001: a tile that does not compile is no tile
                continue
            if best is None or seconds < best[0]:
                best = (seconds, list(tile))
        if best is not None:
            CAST_TILE[:] = best[1]


def fp8_matmul(a, b, one, fast):
    """a [M, K] times b [N, K] transposed, FP8 in, BF16 out: the only layout that FP8 tensor cores take here."""
    return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast)


class Fp8Function(torch.autograd.Function if torch else object):
    """A linear layer in FP8 with casts: E4M3 forward, E5M2 gradients, fast accumulation forward only (delayed scaling)."""

    @staticmethod
    def forward(ctx, x, w, one, amax):
        flat = x.reshape(-1, x.shape[-1])
        x8, x8t = cast_transpose(flat, one, amax, torch.float8_e4m3fn)
        w8, w8t = cast_transpose(w, one, amax, torch.float8_e4m3fn)
        ctx.save_for_backward(x8t, w8t, one, amax)
        ctx.shape = x.shape
        return fp8_matmul(x8, w8, one, True).view(*x.shape[:-1], w.shape[0])

    @staticmethod
    def backward(ctx, g):
        x8t, w8t, one, amax = ctx.saved_tensors
        g8, g8t = cast_transpose(g.reshape(-1, g.shape[-1]), one, amax, torch.float8_e5m2)
        dx = fp8_matmul(g8, w8t, one, False).view(ctx.shape)
        return dx, fp8_matmul(g8t, x8t, one, False), None, None


# ---------------------------------------------------------------------------------------------------------------------
# Sections. Each takes a Context and sends rows.

def layer_shapes(name, tp):
    """(n, k) of the four linear layers of one rank, forward."""
    hidden, ffn, heads, kv, dim, gated, _ = NETWORKS[name]
    return [((heads + 2 * kv) * dim // tp, hidden), (hidden, heads * dim // tp), ((2 if gated else 1) * ffn // tp, hidden),
            (hidden, ffn // tp)]


def gemm_shapes(quick):
    """(form, m, n, k), no doubles: forward for several token counts, gradients at 8,192 tokens, squares, thin LoRA shapes."""
    shapes = []
    for size in (512, 1024, 2048, 4096, 8192) if quick else (512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384):
        shapes.append(("y=x*w^T", size, size, size))
    for name, network in NETWORKS.items():
        for tp in network[-1]:
            if quick and (name, tp) not in (("llama2-70b", 4), ("llama3-8b", 1)):
                continue
            for n, k in layer_shapes(name, tp):
                for m in (8192,) if quick else (2048, 4096, 8192, 16384):
                    shapes.append(("y=x*w^T", m, n, k))
                shapes.append(("dx=g*w", 8192, k, n))
                shapes.append(("dw=g^T*x", n, k, 8192))
    for n, k in ((16, 8192), (2560, 16), (16, 2048), (8192, 16)):  # LoRA, rank 16
        for m in (8192,) if quick else (4096, 8192):
            shapes.append(("y=x*w^T", m, n, k))
            shapes.append(("dx=g*w", m, k, n))
            shapes.append(("dw=g^T*x", n, k, m))
    return list(dict.fromkeys(shapes))


class GemmPool:
    """Random operands, cut from one filled buffer each: no allocation and no fill between shapes."""

    def __init__(self, elements):
        self.a = torch.randn(elements, device="cuda", dtype=torch.bfloat16)
        self.b = torch.randn(elements, device="cuda", dtype=torch.bfloat16)
        self.out = torch.empty(2 * elements, device="cuda", dtype=torch.bfloat16)
        self.a8 = self.b8 = None
        self.one = torch.ones((), device="cuda")
        if hasattr(torch, "_scaled_mm") and torch.cuda.get_device_capability() >= (8, 9):
            self.a8, self.b8 = self.a.to(torch.float8_e4m3fn), self.b.to(torch.float8_e4m3fn)

    def bf16(self, form, m, n, k):
        out = self.out[:m * n].view(m, n)
        if form == "y=x*w^T":
            a, b = self.a[:m * k].view(m, k), self.b[:n * k].view(n, k).t()
        elif form == "dx=g*w":
            a, b = self.a[:m * k].view(m, k), self.b[:k * n].view(k, n)
        else:
            a, b = self.a[:m * k].view(k, m).t(), self.b[:k * n].view(k, n)
        return lambda: torch.mm(a, b, out=out)

    def fp8(self, form, m, n, k):
        a, b = self.a8[:m * k].view(m, k), self.b8[:n * k].view(n, k)
        fast = form == "y=x*w^T"
        return lambda: fp8_matmul(a, b, self.one, fast)


def section_gemm(ctx):
    shapes = gemm_shapes(ctx.cfg["quick"])
    ctx.plan(len(shapes))
    pool = GemmPool(max(max(m * k, n * k) for _, m, n, k in shapes))
    for form, m, n, k in shapes:
        label = f"{form} {m} x {n} x {k}"
        if not ctx.item(label):
            continue
        flop = 2.0 * m * n * k
        bf16 = ctx.attempt(label + " bf16", ctx.bench, pool.bf16(form, m, n, k))
        graph = fp8 = None
        small = flop < 1e11 or min(m, n, k) < 64  # too small for the host to keep up with
        if small:
            graph = ctx.attempt(label + " bf16 graph", ctx.bench, pool.bf16(form, m, n, k), True)
        if pool.a8 is not None and min(m, n, k) >= 16:
            fp8 = ctx.attempt(label + " fp8", ctx.bench, pool.fp8(form, m, n, k), small)
        ctx.row("gemm", form=form, m=m, n=n, k=k, bf16_s=bf16, bf16_graph_s=graph, fp8_e4m3_s=fp8)


BACKENDS = {1: "flash", 2: "efficient", 3: "cudnn"}


def attention_pair(backend, batch, heads, kv_heads, q_seq, kv_seq, dim, mask, value_dim=None):
    """(forward, backward) calls. Tensors lie as in training: [batch, seq, heads, dim], seen as [batch, heads, seq, dim].
    value_dim: channels of a head's values and output, where not those of its queries and keys."""
    def make(h, s, channels=dim):
        return torch.randn(batch, s, h, channels, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    values = value_dim or dim
    q, k, v, g = make(heads, q_seq), make(kv_heads, kv_seq), make(kv_heads, kv_seq, values), make(heads, q_seq, values)
    causal = mask.startswith("causal")
    if backend == "flash":
        # Called below the dispatcher's checks: with q shorter than kv its causal mask is aligned to the end of kv, which is
        # what a rank with the last chunk of a context-parallel sequence computes.
        if kv_heads != heads:
            k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
        fwd = torch.ops.aten._scaled_dot_product_flash_attention
        bwd = torch.ops.aten._scaled_dot_product_flash_attention_backward
        out = fwd(q, k, v, 0.0, causal, False)
        return (lambda: fwd(q, k, v, 0.0, causal, False),
                lambda: bwd(g, q, k, v, out[0], out[1], out[2], out[3], out[4], out[5], 0.0, causal, out[6], out[7]))
    from torch.nn.attention import SDPBackend, sdpa_kernel
    which = {"cudnn": SDPBackend.CUDNN_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}[backend]
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    extra = {"enable_gqa": True} if kv_heads != heads else {}

    def forward():
        with sdpa_kernel([which]):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, **extra)
    out = forward()
    return forward, lambda: torch.autograd.grad(out, (q, k, v), g, retain_graph=True)


def section_attention(ctx):
    quick = ctx.cfg["quick"]
    causal, more = [], []
    for dim in (128, 64):
        for heads in (8, 32) if quick else (4, 8, 16, 32, 64):
            for seq in (2048, 8192) if quick else (1024, 2048, 4096, 8192, 16384):
                causal.append((1, heads, heads, seq, seq, dim, "causal"))
    if not quick:
        for batch in (2, 4):
            for heads, seq in ((16, 2048), (16, 4096), (32, 2048), (32, 4096), (16, 8192)):
                causal.append((batch, heads, heads, seq, seq, 128, "causal"))
    for heads, kv in ((16, 2), (64, 8), (32, 8)):
        more.append((1, heads, kv, 8192, 8192, 128, "causal"))  # grouped queries
    for heads in (16,) if quick else (8, 16, 32):
        for seq in (8192,) if quick else (4096, 8192, 16384):
            more.append((1, heads, heads, seq // 2, seq, 128, "full"))
            more.append((1, heads, heads, seq // 2, seq, 128, "causal_end"))
            more.append((1, heads, heads, seq // 2, seq // 4, 128, "full"))
            more.append((1, heads, heads, seq // 4, seq // 2, 128, "full"))
    more = list(dict.fromkeys(more))
    ctx.plan(len(causal) + len(more))
    probe = torch.randn(1, 8, 1024, 128, device="cuda", dtype=torch.bfloat16)
    default = ctx.attempt("default backend", lambda: BACKENDS.get(torch._fused_sdp_choice(probe, probe, probe, is_causal=True)))
    default = default or "flash"
    for shape in causal + more:
        batch, heads, kv, q_seq, kv_seq, dim, mask = shape
        if not ctx.item(f"{batch} x {heads}({kv}) x {q_seq}/{kv_seq} x {dim} {mask}"):
            continue
        backends = ["cudnn", "flash"]
        if not quick and mask == "causal" and (batch > 1 or heads in (4, 64)) and kv == heads:
            backends = [default]  # the other backend is seen at enough shapes
        if mask == "causal_end":
            backends = ["flash"]
        for backend in backends:
            label = f"attention {backend} {shape}"
            pair = ctx.attempt(label, attention_pair, backend, *shape)
            fwd = pair and ctx.attempt(label + " forward", ctx.bench, pair[0], True)
            bwd = pair and ctx.attempt(label + " backward", ctx.bench, pair[1], True)
            del pair
            ctx.row("attention_backends", backend=backend, batch=batch, heads=heads, kv_heads=kv, q_seq=q_seq, kv_seq=kv_seq,
                    head_dim=dim, mask=mask, fwd_s=fwd, bwd_s=bwd)
            if backend == default and mask == "causal" and kv == heads:
                ctx.row("attention", batch=batch, heads=heads, seq=q_seq, head_dim=dim, mask=mask, fwd_s=fwd, bwd_s=bwd)


def power_of_two(n):
    return 1 << (n - 1).bit_length()


def rand(*shape, dtype=None):
    return torch.randn(*shape, device="cuda", dtype=dtype or torch.bfloat16)


def empty(*shape, dtype=None):
    return torch.empty(*shape, device="cuda", dtype=dtype or torch.bfloat16)


def memory_cases(quick):
    """(op, least bytes, maker of one call on its own buffers). Calls rotate over makers so that the cache does not help."""
    cases = []

    def add(op, size, make):
        cases.append((op, size, make))

    for mib in (4, 64) if quick else (4, 16, 64, 256, 1024, 4096):
        n = mib * 2**20 // 4  # bytes read plus written = mib
        add("copy", mib * 2**20, lambda n=n: (lambda a, b: lambda: b.copy_(a))(rand(n), empty(n)))
    if not quick:
        add("memset_zero", 2**30, lambda: (lambda a: a.zero_)(empty(2**29)))
        add("transpose_copy_8192x14336", 2 * 2 * 8192 * 14336,
            lambda: (lambda a, b: lambda: b.copy_(a.t()))(rand(8192, 14336), empty(14336, 8192)))

    sizes = ((4096, 4096),) if quick else ((8192, 8192), (4096, 8192), (4096, 4096), (2048, 4096))
    for r, c in sizes:
        e, tag = 2 * r * c, f"{r}x{c}"
        block, warps = power_of_two(c), 16 if c > 4096 else 8
        programs = 264

        def rms_eager(r=r, c=c):
            x, w = rand(r, c), rand(c)
            return lambda: F.rms_norm(x, (c,), w, 1e-5)

        def rms_eager_bwd(r=r, c=c):
            x, w, g = rand(r, c).requires_grad_(), rand(c).requires_grad_(), rand(r, c)
            y = F.rms_norm(x, (c,), w, 1e-5)
            return lambda: torch.autograd.grad(y, (x, w), g, retain_graph=True)

        def rms_triton(r=r, c=c, block=block, warps=warps):
            x, w, y, s = rand(r, c), rand(c), empty(r, c), empty(r, dtype=torch.float32)
            return lambda: k_rms_fwd[(r,)](x, w, y, s, c, 1e-5, block, num_warps=warps)

        def rms_triton_bwd(r=r, c=c, block=block, warps=warps):
            x, w, g, dx = rand(r, c), rand(c), rand(r, c), empty(r, c)
            s, part = rand(r, dtype=torch.float32).abs(), empty(programs, c, dtype=torch.float32)

            def call():
                k_rms_bwd[(programs,)](g, x, w, s, dx, part, r, c, block, num_warps=warps)
                return part.sum(0)
            return call

        def layer_eager(r=r, c=c):
            x, w, b = rand(r, c), rand(c), rand(c)
            return lambda: F.layer_norm(x, (c,), w, b, 1e-5)

        def layer_eager_bwd(r=r, c=c):
            x, w, b, g = rand(r, c).requires_grad_(), rand(c).requires_grad_(), rand(c).requires_grad_(), rand(r, c)
            y = F.layer_norm(x, (c,), w, b, 1e-5)
            return lambda: torch.autograd.grad(y, (x, w, b), g, retain_graph=True)

        def layer_triton(r=r, c=c, block=block, warps=warps):
            x, w, b, y = rand(r, c), rand(c), rand(c), empty(r, c)
            m, s = empty(r, dtype=torch.float32), empty(r, dtype=torch.float32)
            return lambda: k_layer_fwd[(r,)](x, w, b, y, m, s, c, 1e-5, block, num_warps=warps)

        def layer_triton_bwd(r=r, c=c, block=block, warps=warps):
            x, w, g, dx = rand(r, c), rand(c), rand(r, c), empty(r, c)
            m, s = rand(r, dtype=torch.float32), rand(r, dtype=torch.float32).abs()
            pw, pb = empty(programs, c, dtype=torch.float32), empty(programs, c, dtype=torch.float32)

            def call():
                k_layer_bwd[(programs,)](g, x, w, m, s, dx, pw, pb, r, c, block, num_warps=warps)
                return pw.sum(0), pb.sum(0)
            return call

        def dropout(r=r, c=c):
            x = rand(r, c)
            return lambda: torch.ops.aten.native_dropout(x, 0.1, True)

        def dropout_bwd(r=r, c=c):
            g = rand(r, c)
            mask = torch.ops.aten.native_dropout(g, 0.1, True)[1]
            return lambda: torch.ops.aten.native_dropout_backward(g, mask, 1.0 / 0.9)

        add(f"rms_norm_fwd_{tag}", 2 * e, rms_eager)
        add(f"rms_norm_bwd_{tag}", 3 * e, rms_eager_bwd)
        add(f"rms_norm_fwd_triton_{tag}", 2 * e, rms_triton)
        add(f"rms_norm_bwd_triton_{tag}", 3 * e, rms_triton_bwd)
        add(f"layer_norm_fwd_{tag}", 2 * e, layer_eager)
        add(f"layer_norm_bwd_{tag}", 3 * e, layer_eager_bwd)
        add(f"layer_norm_fwd_triton_{tag}", 2 * e, layer_triton)
        add(f"layer_norm_bwd_triton_{tag}", 3 * e, layer_triton_bwd)
        add(f"add_{tag}", 3 * e,
            lambda r=r, c=c: (lambda a, b, o: lambda: torch.add(a, b, out=o))(rand(r, c), rand(r, c), empty(r, c)))
        add(f"dropout_fwd_{tag}", 2 * e + e // 2, dropout)  # writes a mask of one byte an element
        add(f"dropout_bwd_{tag}", 2 * e + e // 2, dropout_bwd)

    for r, c in ((4096, 7168),) if quick else ((8192, 14336), (8192, 7168), (4096, 14336), (4096, 7168), (2048, 7168)):
        e, tag = 2 * r * c, f"{r}x{c}"

        def swiglu_eager(r=r, c=c):
            x = rand(r, 2 * c)
            a, u = x.chunk(2, -1)
            return lambda: F.silu(a) * u

        def swiglu_eager_bwd(r=r, c=c):
            x, g = rand(r, 2 * c).requires_grad_(), rand(r, c)
            a, u = x.chunk(2, -1)
            y = F.silu(a) * u
            return lambda: torch.autograd.grad(y, x, g, retain_graph=True)

        def swiglu_triton(r=r, c=c):
            x, y = rand(r, 2 * c), empty(r, c)
            return lambda: k_swiglu_fwd[(r, triton.cdiv(c, 2048))](x, y, c, 2048, num_warps=8)

        def swiglu_triton_bwd(r=r, c=c):
            x, g, dx = rand(r, 2 * c), rand(r, c), empty(r, 2 * c)
            return lambda: k_swiglu_bwd[(r, triton.cdiv(c, 2048))](g, x, dx, c, 2048, num_warps=8)

        def gelu_bwd(r=r, c=c):
            x, g = rand(r, c), rand(r, c)
            return lambda: torch.ops.aten.gelu_backward(g, x, approximate="tanh")

        add(f"swiglu_fwd_eager_{tag}", 3 * e, swiglu_eager)
        add(f"swiglu_bwd_eager_{tag}", 5 * e, swiglu_eager_bwd)
        add(f"swiglu_fwd_triton_{tag}", 3 * e, swiglu_triton)
        add(f"swiglu_bwd_triton_{tag}", 5 * e, swiglu_triton_bwd)
        add(f"gelu_fwd_{tag}", 2 * e, lambda r=r, c=c: (lambda x: lambda: F.gelu(x, approximate="tanh"))(rand(r, c)))
        add(f"gelu_bwd_{tag}", 3 * e, gelu_bwd)

    for s, h in ((4096, 16),) if quick else ((8192, 64), (8192, 16), (4096, 16)):
        def rope_triton(s=s, h=h):
            x, y, cs, sn = rand(s, h, 128), empty(s, h, 128), rand(s, 64, dtype=torch.float32), rand(s, 64, dtype=torch.float32)
            return lambda: k_rope[(s,)](x, cs, sn, y, h, 64, num_warps=8 if h > 16 else 4)

        def rope_eager(s=s, h=h):
            x, cs, sn = rand(s, h, 128), rand(s, 1, 128), rand(s, 1, 128)

            def call():
                a, b = x.chunk(2, -1)
                return x * cs + torch.cat((-b, a), -1) * sn
            return call
        add(f"rope_triton_{s}x{h}x128", 2 * 2 * s * h * 128, rope_triton)
        add(f"rope_eager_{s}x{h}x128", 2 * 2 * s * h * 128, rope_eager)

    for r, v in ((2048, 32000),) if quick else ((8192, 32000), (4096, 128256), (8192, 128256), (8192, 32064), (8192, 16032)):
        def xent_triton(r=r, v=v):
            x, t = rand(r, v), torch.randint(v, (r,), device="cuda")
            loss, lse = empty(r, dtype=torch.float32), empty(r, dtype=torch.float32)
            return lambda: k_xent_fwd[(r,)](x, t, loss, lse, v, 4096, num_warps=8)

        def xent_triton_bwd(r=r, v=v):
            x, t, dx, lse = rand(r, v), torch.randint(v, (r,), device="cuda"), empty(r, v), rand(r, dtype=torch.float32) + 11.0
            return lambda: k_xent_bwd[(r, triton.cdiv(v, 4096))](x, t, lse, dx, v, 1.0 / r, 4096, num_warps=8)

        def xent_eager(r=r, v=v):
            x, t = rand(r, v), torch.randint(v, (r,), device="cuda")
            return lambda: F.cross_entropy(x.float(), t)

        def xent_eager_bwd(r=r, v=v):
            x, t = rand(r, v).requires_grad_(), torch.randint(v, (r,), device="cuda")
            loss = F.cross_entropy(x.float(), t)
            return lambda: torch.autograd.grad(loss, x, retain_graph=True)
        add(f"cross_entropy_fwd_triton_{r}x{v}", 2 * r * v, xent_triton)
        add(f"cross_entropy_bwd_triton_{r}x{v}", 4 * r * v, xent_triton_bwd)
        add(f"cross_entropy_fwd_{r}x{v}_fp32", 2 * r * v, xent_eager)
        add(f"cross_entropy_bwd_{r}x{v}_fp32", 4 * r * v, xent_eager_bwd)

    for v, h in ((32000, 4096),) if quick else ((128256, 4096), (32000, 8192), (128256, 8192)):
        def embed(v=v, h=h):
            w, t = rand(v, h), torch.randint(v, (8192,), device="cuda")
            return lambda: F.embedding(t, w)

        def embed_bwd(v=v, h=h):
            g, t = rand(8192, h), torch.randint(v, (8192,), device="cuda")
            return lambda: torch.ops.aten.embedding_dense_backward(g, t, v, -1, False)
        add(f"embedding_fwd_8192_of_{v}x{h}", 2 * 2 * 8192 * h, embed)
        add(f"embedding_bwd_8192_of_{v}x{h}", 2 * v * h + 3 * 2 * 8192 * h, embed_bwd)

    p = 24 if quick else 28
    for dtype, width in ((torch.bfloat16, 2), (torch.float32, 4)):
        def adamw(dtype=dtype):
            w = torch.nn.Parameter(rand(2**p, dtype=dtype))
            w.grad = rand(2**p, dtype=dtype)
            opt = torch.optim.AdamW([w], fused=True, capturable=True)
            opt.step()
            return opt.step
        add(f"adamw_fused_{'bf16' if width == 2 else 'fp32'}_2^{p}_params", 7 * width * 2**p, adamw)
    add(f"grad_accumulate_bf16_into_fp32_2^{p}", 10 * 2**p,
        lambda: (lambda a, b: lambda: a.add_(b))(rand(2**p, dtype=torch.float32), rand(2**p)))
    add(f"cast_fp32_to_bf16_2^{p}", 6 * 2**p,
        lambda: (lambda a, b: lambda: b.copy_(a))(rand(2**p, dtype=torch.float32), empty(2**p)))
    add(f"grad_norm_fp32_2^{p}", 4 * 2**p, lambda: (lambda a: lambda: torch.linalg.vector_norm(a))(rand(2**p, dtype=torch.float32)))
    return cases


def processor():
    """The host's processor: what issuing a kernel costs is its doing, not the GPU's."""
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        return f"{len(names)} x {names[0]}".replace(",", " ") if names else ""
    except OSError:
        return ""


def host_time(function, count=200):
    """Seconds the host takes to issue one call, the GPU's queue never full: median of 5."""
    for _ in range(20):
        function()
    samples = []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            function()
        samples.append((time.perf_counter() - begin) / count)
        torch.cuda.synchronize()
    return statistics.median(samples)


def kernel_count(function):
    """Kernels (and copies) that one call launches."""
    from torch.profiler import ProfilerActivity, profile
    function()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        function()
        torch.cuda.synchronize()
    return sum(1 for e in trace.events() if "cuda" in str(e.device_type).lower())


def host_cases():
    x = rand(64, 256)
    w, plain = torch.nn.Parameter(rand(256, 256)), rand(256, 256)
    xg = rand(64, 256).requires_grad_()
    g = rand(64, 256)
    q = rand(1, 4, 64, 128)
    qg = rand(1, 4, 64, 128).requires_grad_()
    y_lin = F.linear(xg, w)
    y_sdpa = F.scaled_dot_product_attention(qg, qg, qg, is_causal=True)
    cases = [("add_1024", lambda a=rand(1024), b=rand(1024): a + b),
             ("linear_no_grad_64x256x256", lambda: F.linear(x, plain)),
             ("linear_fwd_64x256x256", lambda: F.linear(xg, w)),
             ("linear_bwd_64x256x256", lambda: torch.autograd.grad(y_lin, (xg, w), g, retain_graph=True)),
             ("rms_norm_fwd", lambda: F.rms_norm(xg, (256,))),
             ("silu_mul_fwd", lambda: F.silu(xg) * xg),
             ("sdpa_no_grad", lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True)),
             ("sdpa_fwd", lambda: F.scaled_dot_product_attention(qg, qg, qg, is_causal=True)),
             ("sdpa_bwd", lambda: torch.autograd.grad(y_sdpa, qg, q, retain_graph=True))]
    if triton is not None:
        y, s = empty(64, 256), empty(64, dtype=torch.float32)
        cases.append(("triton_kernel", lambda: k_rms_fwd[(64,)](x, x, y, s, 256, 1e-5, 256, num_warps=4)))
    layers = [("llama_layer", Layer(256, 2, 2, 512, 128)), ("llama_layer_gqa", Layer(512, 4, 2, 512, 128))]
    if triton is not None and hasattr(torch, "_scaled_mm") and torch.cuda.get_device_capability() >= (8, 9):
        layers.append(("llama_layer_fp8", Layer(256, 2, 2, 512, 128, fp8=True)))
    for name, layer in layers:
        hidden = layer.hidden
        a = rand(1, 64, hidden).requires_grad_()
        out = layer(a)
        gout = rand(1, 64, hidden)
        leaves = [a] + list(layer.parameters())
        cases.append((name + "_fwd", lambda layer=layer, a=a: layer(a)))
        cases.append((name + "_bwd",
                      lambda out=out, leaves=leaves, gout=gout: torch.autograd.grad(out, leaves, gout, retain_graph=True)))
        opt = torch.optim.AdamW(layer.parameters(), fused=True)
        for leaf in layer.parameters():
            leaf.grad = torch.zeros_like(leaf)
        cases.append((name + "_adamw_fused_step", opt.step))
    return cases


def section_memory(ctx):
    cases = memory_cases(ctx.cfg["quick"])
    hosts = ctx.attempt("host cases", host_cases) or []
    ctx.plan(len(cases) + len(hosts) + 1)
    if ctx.item("tiny kernels"):
        one = torch.zeros(1, device="cuda")
        tiny = torch.zeros(1024, device="cuda")
        ctx.attempt("tiny", ctx.bench, lambda: tiny.add_(1))  # the host's first calls are slow
        ctx.row("memory_ops", op="tiny_kernel", bytes_read_plus_written=4,
                seconds=ctx.attempt("tiny", ctx.bench, lambda: one.add_(1)))
        ctx.row("memory_ops", op="tiny_kernel_eager_each", bytes_read_plus_written=8192,
                seconds=ctx.attempt("tiny eager", ctx.bench, lambda: tiny.add_(1)))
        ctx.row("memory_ops", op="tiny_kernel_graph_each", bytes_read_plus_written=8192,
                seconds=ctx.attempt("tiny graph", ctx.bench, lambda: tiny.add_(1), True))
        ctx.row("memory_ops", op="tiny_kernel_host_issue_each",
                seconds=ctx.attempt("tiny host", host_time, lambda: tiny.add_(1)))
    for name, function in hosts:
        if ctx.item("host: " + name):
            seconds = ctx.attempt(name, host_time, function)
            count = ctx.attempt(name + " kernels", kernel_count, function)
            ctx.row("host_issue", machine=processor(), op=name, kernels=count, host_s_each=seconds)
    del hosts
    for op, size, make in cases:
        if not ctx.item(op):
            continue

        def measure(op=op, size=size, make=make):
            sets = max(1, min(8, math.ceil(3 * 50e6 / size)))  # three times the L2 cache between two uses of a buffer
            # Not in a graph: embedding_bwd, which sorts with the host's help, and large copies, which a graph hands to the slower
            # copy engine (seen on H100 and H200: 2.4 and 2.7 TB/s in a graph, 3.0 and 4.2 outside).
            graph = not op.startswith("embedding_bwd") and not (op == "copy" and size > 2**28)
            return ctx.bench([make() for _ in range(sets)], graph)
        ctx.row("memory_ops", op=op, bytes_read_plus_written=size, seconds=ctx.attempt(op, measure))


def section_fp8(ctx):
    if triton is None:
        ctx.warn("no Triton: the FP8 casts are left out")
        return
    shapes = [(8192, n, k) for n, k in layer_shapes("llama2-70b", 4)]
    if not ctx.cfg["quick"]:
        shapes += [(4096, n, k) for n, k in layer_shapes("llama2-70b", 4)]
        shapes += [(8192, n, k) for n, k in layer_shapes("llama3-8b", 1)]
        shapes += [(8192, n, k) for n, k in layer_shapes("llama3.1-405b", 8)]
        shapes += [(8192, n, k) for n, k in layer_shapes("gpt3-175b", 4)]
    casts = ((8192, 8192),) if ctx.cfg["quick"] else ((8192, 8192), (8192, 14336), (8192, 2048), (4096, 8192), (2048, 4096),
                                                      (14336, 8192), (8192, 28672))
    ctx.plan(len(shapes) + len(casts))
    e4, e5 = torch.float8_e4m3fn, torch.float8_e5m2
    one, amax = torch.ones((), device="cuda"), torch.zeros((), device="cuda")
    ctx.attempt("cast tile", tune_cast, rand(8192, 8192), one, amax)
    ctx.warn(f"note: cast + transpose tile (rows, columns, warps) {CAST_TILE}")
    for r, c in casts:
        if not ctx.item(f"casts {r} x {c}"):
            continue
        sets = max(1, min(6, math.ceil(150e6 / (3 * r * c))))
        xs = [rand(r, c) for _ in range(sets)]
        ys = [torch.empty(r, c, dtype=e4, device="cuda") for _ in range(sets)]

        def check(x=xs[0]):
            y, yt = cast_transpose(x, one, amax, e4)
            if not (torch.equal(y.float(), x.to(e4).float()) and torch.equal(yt.float(), y.t().float())):
                raise ValueError("cast + transpose gives wrong values")
        ctx.attempt(f"check of cast {r} x {c}", check)
        for op, size, calls in (
                ("fp8_cast_amax", 3 * r * c, [lambda x=x, y=y: cast_only(x, one, amax, e4, y) for x, y in zip(xs, ys)]),
                ("fp8_cast_transpose_amax", 4 * r * c, [lambda x=x: cast_transpose(x, one, amax, e4) for x in xs]),
                ("amax", 2 * r * c, [lambda x=x: torch.linalg.vector_norm(x, float("inf")) for x in xs]),
                ("fp8_cast_torch", 3 * r * c, [lambda x=x, y=y: y.copy_(x) for x, y in zip(xs, ys)]),
                ("fp8_transpose", 2 * r * c, [lambda y=y: y.view(torch.uint8).t().contiguous() for y in ys])):
            ctx.row("memory_ops", op=f"{op}_{r}x{c}", bytes_read_plus_written=size,
                    seconds=ctx.attempt(op, ctx.bench, calls, True))
        del xs, ys
    for m, n, k in dict.fromkeys(shapes):
        if not ctx.item(f"FP8 linear {m} x {n} x {k}"):
            continue
        x, w, g = rand(m, k), rand(n, k), rand(m, n)

        def parts(x=x, w=w, g=g):
            x8, x8t = cast_transpose(x, one, amax, e4)
            w8, w8t = cast_transpose(w, one, amax, e4)
            g8, g8t = cast_transpose(g, one, amax, e5)
            yield "cast_transpose_x", lambda: cast_transpose(x, one, amax, e4)
            yield "cast_transpose_w", lambda: cast_transpose(w, one, amax, e4)
            yield "cast_transpose_g", lambda: cast_transpose(g, one, amax, e5)
            yield "gemm_fwd", lambda: fp8_matmul(x8, w8, one, True)
            yield "gemm_fwd_full_accumulation", lambda: fp8_matmul(x8, w8, one, False)
            yield "gemm_dgrad", lambda: fp8_matmul(g8, w8t, one, False)
            yield "gemm_dgrad_fast_accumulation", lambda: fp8_matmul(g8, w8t, one, True)
            yield "gemm_wgrad", lambda: fp8_matmul(g8t, x8t, one, False)

            def whole_fwd(cast_w):
                a, _ = cast_transpose(x, one, amax, e4)
                b = cast_transpose(w, one, amax, e4)[0] if cast_w else w8
                return fp8_matmul(a, b, one, True)

            def whole_bwd():
                a, at = cast_transpose(g, one, amax, e5)
                return fp8_matmul(a, w8t, one, False), fp8_matmul(at, x8t, one, False)
            yield "whole_fwd_with_weight_cast", lambda: whole_fwd(True)
            yield "whole_fwd_weight_cast_cached", lambda: whole_fwd(False)
            yield "whole_bwd", whole_bwd
            yield "bf16_fwd", lambda: x @ w.t()
            yield "bf16_dgrad", lambda: g @ w
            yield "bf16_wgrad", lambda: g.t() @ x
        calls = ctx.attempt(f"FP8 linear {m} x {n} x {k}", lambda: list(parts()))
        for part, call in calls or []:
            ctx.row("fp8_linear", m=m, n=n, k=k, part=part, seconds=ctx.attempt(part, ctx.bench, call, True))
        del calls, x, w, g


# ---------------------------------------------------------------------------------------------------------------------
# Layers and training steps.

if torch is not None:
    class CopyToTp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            g = g.contiguous()
            torch.distributed.all_reduce(g)
            return g

    class ReduceFromTp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            torch.distributed.all_reduce(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    class Fp8Linear(torch.nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.weight = torch.nn.Parameter(rand(outputs, inputs) * inputs ** -0.5)
            self.one = torch.ones((), device="cuda")
            self.amax = torch.zeros((), device="cuda")

        def forward(self, x):
            return Fp8Function.apply(x, self.weight, self.one, self.amax)

    class Layer(torch.nn.Module):
        """A Llama-like layer: RMSNorm, GQA causal attention, SwiGLU; one rank's shard under tensor parallel."""

        def __init__(self, hidden, heads, kv, ffn, dim, tp=1, fp8=False, talk=False):
            super().__init__()
            self.hidden, self.heads, self.kv, self.dim, self.talk = hidden, heads // tp, kv // tp, dim, talk

            def linear(i, o):
                return Fp8Linear(i, o) if fp8 else torch.nn.Linear(i, o, bias=False, device="cuda", dtype=torch.bfloat16)
            self.n1 = torch.nn.RMSNorm(hidden, device="cuda", dtype=torch.bfloat16)
            self.n2 = torch.nn.RMSNorm(hidden, device="cuda", dtype=torch.bfloat16)
            self.qkv = linear(hidden, (self.heads + 2 * self.kv) * dim)
            self.proj = linear(self.heads * dim, hidden)
            self.up = linear(hidden, 2 * ffn // tp)
            self.down = linear(ffn // tp, hidden)

        def forward(self, x):
            batch, seq, _ = x.shape
            h = self.n1(x)
            h = CopyToTp.apply(h) if self.talk else h
            q, k, v = self.qkv(h).view(batch, seq, -1, self.dim).transpose(1, 2).split((self.heads, self.kv, self.kv), 1)
            extra = {"enable_gqa": True} if self.kv != self.heads else {}
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True, **extra)
            a = self.proj(a.transpose(1, 2).reshape(batch, seq, -1))
            x = x + (ReduceFromTp.apply(a) if self.talk else a)
            h = self.n2(x)
            h = CopyToTp.apply(h) if self.talk else h
            gate, up = self.up(h).chunk(2, -1)
            a = self.down(F.silu(gate) * up)
            return x + (ReduceFromTp.apply(a) if self.talk else a)


def run_steps(ctx, shape, precision, graph, tp, dp, talk):
    """(median step s, p95, forward s, W of each GPU, peak bytes) of a layer stack's training step."""
    layers, hidden, heads, kv, ffn, seq, batch = shape
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = torch.nn.Sequential(*[Layer(hidden, heads, kv, ffn, hidden // heads, tp, precision == "fp8", talk)
                                  for _ in range(layers)])
    if dp > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[ctx.rank], gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True, capturable=graph)
    x, g = rand(batch, seq, hidden), rand(batch, seq, hidden)
    halfway = torch.cuda.Event(enable_timing=True)

    def step(mark=False):
        y = model(x)
        if mark:
            halfway.record()
        y.backward(g)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    fwd = None
    run = step
    if graph:
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured, stream=torch.cuda.current_stream(), capture_error_mode=capture_mode()):
            model(x).backward(g)
            optimizer.step()
        run = captured.replay
    else:
        samples = []
        for _ in range(5):
            begin = torch.cuda.Event(enable_timing=True)
            begin.record()
            step(True)
            torch.cuda.synchronize()
            samples.append(begin.elapsed_time(halfway) * 1e-3)
        fwd = statistics.median(samples)
    peak = torch.cuda.max_memory_allocated()
    run()
    estimate = timed([run], 3)
    estimate = max(ctx.gather(estimate))
    warm, count = max(2, round(0.5 / estimate)), max(8, min(2000, round(ctx.cfg["window"] / estimate)))
    with ctx.meter as meter:
        for _ in range(warm):
            run()
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        torch.cuda.synchronize()
        marks[0].record()
        started = time.perf_counter()
        for i in range(count):
            run()
            marks[i + 1].record()
            if i >= 4:
                marks[i - 3].synchronize()
        torch.cuda.synchronize()
        stopped = time.perf_counter()
    times = sorted(a.elapsed_time(b) * 1e-3 for a, b in zip(marks, marks[1:]))
    watts = meter.window(started, stopped)[0]
    return statistics.median(times), times[min(len(times) - 1, int(0.95 * len(times)))], fwd, ctx.gather(watts), peak


# layers, hidden, heads, kv heads, ffn, seq, micro batch; precision; tensor parallel size of the shard (0: not a shard)
STEP_SHAPES = [
    ((4, 4096, 32, 8, 14336, 4096, 1), "bf16", 0), ((4, 4096, 32, 8, 14336, 8192, 1), "bf16", 0),
    ((4, 4096, 32, 8, 14336, 2048, 1), "bf16", 0), ((4, 4096, 32, 8, 14336, 1024, 1), "bf16", 0),
    ((12, 2048, 16, 16, 5504, 2048, 2), "bf16", 0), ((12, 2048, 16, 16, 5504, 2048, 1), "bf16", 0),
    ((24, 1024, 16, 16, 2816, 1024, 4), "bf16", 0), ((24, 1024, 16, 16, 2816, 512, 1), "bf16", 0),
    ((2, 8192, 64, 8, 28672, 8192, 1), "bf16", 4), ((2, 8192, 64, 8, 28672, 4096, 1), "bf16", 4),
    ((4, 4096, 32, 8, 14336, 8192, 1), "fp8", 0), ((2, 8192, 64, 8, 28672, 8192, 1), "fp8", 4),
    ((4, 4096, 32, 8, 14336, 2048, 1), "fp8", 0),
]
PARALLEL_SHAPES = [((4, 4096, 32, 8, 14336, 4096, 1), "TP"), ((8, 4096, 32, 8, 14336, 2048, 1), "TP"),
                   ((4, 8192, 64, 8, 28672, 8192, 1), "TP"), ((12, 2048, 16, 16, 5504, 2048, 2), "TP"),
                   ((4, 4096, 32, 8, 14336, 4096, 1), "DDP"), ((4, 4096, 32, 8, 14336, 8192, 1), "DDP")]


def section_steps(ctx):
    plan = []
    if ctx.world == 1:
        shapes = [STEP_SHAPES[i] for i in (3, 4)] if ctx.cfg["quick"] else STEP_SHAPES
        for shape, precision, shard in shapes:
            plan += [(shape, precision, graph, "TP shard, no comm" if shard else "single", shard or 1, 1, False)
                     for graph in (0, 1)]
    else:
        for shape, kind in PARALLEL_SHAPES[:1] if ctx.cfg["quick"] else PARALLEL_SHAPES:
            if kind == "TP" and shape[3] % ctx.world == 0:
                plan += [(shape, "bf16", graph, "TP+DDP", ctx.world, 1, True) for graph in (0, 1)]
            elif kind == "DDP":
                plan.append((shape, "bf16", 0, "DDP", 1, ctx.world, False))
    ctx.plan(len(plan))
    for number, (shape, precision, graph, kind, tp, dp, talk) in enumerate(plan, 1):
        layers, hidden, heads, kv, ffn, seq, batch = shape
        label = f"{kind} {layers} x {hidden} seq {seq} {precision} {'graph' if graph else 'eager'}"
        if not ctx.item(label) or (precision == "fp8" and triton is None):
            continue
        result = ctx.attempt(label, run_steps, ctx, shape, precision, bool(graph), tp, dp, talk)
        gc.collect()
        torch.cuda.empty_cache()
        step, p95, fwd, watts, peak = result or (None, None, None, [None], None)
        cells = dict(id=f"{ctx.cfg['id']}{ctx.cfg['id_base'] + number:02d}", gpus=ctx.world, parallel=kind.replace(",", ":"),
                     tp=tp, pp=1, vp=1, dp=dp, schedule="none", layers=layers, hidden=hidden, heads=heads, kv_heads=kv,
                     ffn=ffn, seq=seq, micro_batch=batch, microbatches=1, lora_rank=0, frozen_base=0, step_s=step,
                     step_s_p95=p95, fwd_s=fwd, watts_each=join_each(watts, 1), watts_mean=mean_or_none(watts),
                     peak_mem_bytes=peak)
        ctx.row("train_steps_graph", graph=graph, precision=precision, **cells)
        if not graph and precision == "bf16":
            ctx.row("train_steps", **cells)


# ---------------------------------------------------------------------------------------------------------------------
# Power.

def layer_calls(precision, seq=8192):
    """(forward, backward) CUDA graph replays of a Llama 70B layer's shard of four, 8,192 tokens."""
    layer = Layer(8192, 64, 8, 28672, 128, tp=4, fp8=precision == "fp8")
    x, g = rand(1, seq, 8192).requires_grad_(), rand(1, seq, 8192)
    leaves = [x] + list(layer.parameters())
    for _ in range(2):
        torch.autograd.grad(layer(x), leaves, g)
    forward = capture([lambda: layer(x)], 2)
    y = layer(x)
    backward = capture([lambda: torch.autograd.grad(y, leaves, g, retain_graph=True)], 1)
    keep = (layer, x, g, leaves, y)
    return (lambda: (forward.replay(), keep)[0]), 2, (lambda: (backward.replay(), keep)[0]), 1


def power_cases(ctx):
    """Yields (phase, m, n, k, calls in one iteration, kernels in one call, maker of the call)."""
    quick = ctx.cfg["quick"]
    pool = {}

    def gemm(precision, form, m, n, k):
        def make():
            need = max(m * k, n * k)
            if "p" not in pool or pool["p"].a.numel() < need:
                pool["p"] = None
                pool["p"] = GemmPool(max(need, 16384 * 16384))
            return getattr(pool["p"], precision)(form, m, n, k)
        return make

    def graphed(make, count=20):
        def built():
            call = make()
            for _ in range(2):
                call()
            graph = capture([call], count)
            keep = call
            return lambda: (graph.replay(), keep)[0]
        return built

    fp8 = hasattr(torch, "_scaled_mm") and torch.cuda.get_device_capability() >= (8, 9)
    for precision in ("bf16", "fp8") if fp8 else ("bf16",):
        for size in (2048, 8192) if quick else (2048, 4096, 8192, 16384):
            make = gemm(precision, "y=x*w^T", size, size, size)
            if size <= 4096:  # replayed in a CUDA graph: the host is too slow for them
                yield f"gemm_{precision}_{size}", size, size, size, 10, 20, graphed(make)
            else:
                yield f"gemm_{precision}_{size}", size, size, size, 10, 1, make
        if not quick:
            for tag, form, m, n, k in (("fc1_70b_tp4", "y=x*w^T", 8192, 14336, 8192), ("fc2_70b_tp4", "y=x*w^T", 8192, 8192, 7168),
                                       ("qkv_70b_tp4", "y=x*w^T", 8192, 2560, 8192), ("proj_70b_tp4", "y=x*w^T", 8192, 8192, 2048),
                                       ("fc1_dgrad_70b_tp4", "dx=g*w", 8192, 8192, 14336),
                                       ("fc1_wgrad_70b_tp4", "dw=g^T*x", 14336, 8192, 8192),
                                       ("fc1_405b_tp8", "y=x*w^T", 8192, 13312, 16384)):
                yield f"gemm_{precision}_{tag}", m, n, k, 10, 1, gemm(precision, form, m, n, k)
    def attention(which, backend, heads, dim):
        def make():
            pair = attention_pair(backend, 1, heads, heads, 8192, 8192, dim, "causal")
            return pair[which]
        return make
    for backend, heads, dim in (("cudnn", 16, 128),) if quick else (("cudnn", 16, 128), ("flash", 16, 128), ("cudnn", 32, 64)):
        for which, way in ((0, "fwd"), (1, "bwd")):
            yield f"attention_{way}_{backend}_8192_{heads}x{dim}", None, None, None, 10, 1, attention(which, backend, heads, dim)

    memory = {op: make for op, _, make in memory_cases(False)}
    names = ["rms_norm_fwd_8192x8192", "rms_norm_bwd_8192x8192", "swiglu_fwd_triton_8192x7168", "swiglu_bwd_triton_8192x7168",
             "add_8192x8192", "copy"]
    if triton is None:
        names = [n for n in names if "triton" not in n]
    for op in names[:1] if quick else names:
        if op == "copy":
            yield "hbm_copy_4GiB", None, None, None, 10, 1, memory[op]
        else:
            yield op, None, None, None, 1, 20, graphed(memory[op])
    if not quick:
        yield "adamw_fused_bf16_2^28_params", None, None, None, 1, 2, graphed(memory["adamw_fused_bf16_2^28_params"], 2)
        if triton is not None:
            yield "fp8_cast_transpose_8192x8192", None, None, None, 1, 20, graphed(lambda: (
                lambda x, one, amax: lambda: cast_transpose(x, one, amax, torch.float8_e4m3fn))(
                    rand(8192, 8192), torch.ones((), device="cuda"), torch.zeros((), device="cuda")))
    if not quick:
        yield "tiny_eager", None, None, None, 100, 1, lambda: (lambda a: lambda: a.add_(1))(torch.zeros(1024, device="cuda"))
        yield "tiny_graph", None, None, None, 10, 100, graphed(
            lambda: (lambda a: lambda: a.add_(1))(torch.zeros(1024, device="cuda")), 100)
    for precision in ("bf16",) if quick or triton is None or not fp8 else ("bf16", "fp8"):
        for which, way in ((0, "fwd"), (2, "bwd")):
            yield f"layer_{way}_70b_tp4_{precision}", None, None, None, 1, (2, 1)[which // 2], \
                (lambda which=which, precision=precision: layer_calls(precision)[which])


BURST_LENGTHS = {"gemm_bf16_8192", "gemm_fp8_8192", "attention_fwd_cudnn_8192_16x128", "attention_bwd_cudnn_8192_16x128"}


def section_power(ctx):
    cases = list(power_cases(ctx))
    ctx.plan(len(cases) + 1)
    torch.zeros(1, device="cuda")
    if ctx.item("idle with context"):
        with ctx.meter as meter:
            time.sleep(0.5)
            begin = time.perf_counter()
            time.sleep(ctx.cfg["window"])
            watts = ctx.gather(meter.window(begin, time.perf_counter())[0])
        ctx.row("power", phase="idle_with_context" + ("" if ctx.world == 1 else f"_x{ctx.world}"), gpus=ctx.world,
                watts_each=join_each(watts, 1), watts_mean=mean_or_none(watts))
    for phase, m, n, k, calls, kernels, make in cases:
        if not ctx.item(phase):
            continue

        def measure(phase=phase, calls=calls, kernels=kernels, make=make):
            call = make()
            burst = ctx.bench(call) / kernels
            if phase in BURST_LENGTHS and ctx.world == 1:  # how the board's controller eats into a burst
                for length in (0.01, 0.03, 0.06, 0.12, 0.25):
                    ctx.row("burst_length", op=phase, burst_length_s=length, seconds_each=bench(call, length, 3))

            def iteration():
                for _ in range(calls):
                    call()
            return burst, sustain(ctx, iteration, ctx.cfg["window"])
        result = ctx.attempt(phase, measure)
        gc.collect()
        burst, (watts, mhz, mhz_end, rate) = result or (None, (None, None, None, None))
        every = ctx.gather((watts, mhz, mhz_end, rate, burst))
        rates = [e[3] for e in every if e[3]]
        ctx.row("power", phase=phase, gpus=ctx.world, watts_each=join_each([e[0] for e in every], 1),
                watts_mean=mean_or_none([e[0] for e in every]), sm_mhz_at_end=join_each([e[2] for e in every], 0),
                iterations_per_s=mean_or_none(rates))
        ctx.row("sustained", op=phase, m=m, n=n, k=k, burst_s=mean_or_none([e[4] for e in every]),
                sustained_s=1.0 / (mean_or_none(rates) * calls * kernels) if rates else None,
                watts_mean=mean_or_none([e[0] for e in every]), sm_mhz_mean=mean_or_none([e[1] for e in every]))


def section_duty(ctx):
    quick = ctx.cfg["quick"]
    wanted = {"gemm_bf16_8192": "gemm_bf16", "gemm_fp8_8192": "gemm_fp8", "gemm_bf16_fc1_70b_tp4": "gemm_bf16_fc1_70b_tp4",
              "gemm_fp8_fc1_70b_tp4": "gemm_fp8_fc1_70b_tp4", "attention_fwd_cudnn_8192_16x128": "attention_fwd",
              "attention_bwd_cudnn_8192_16x128": "attention_bwd", "layer_fwd_70b_tp4_bf16": "layer_fwd_70b_tp4_bf16",
              "layer_bwd_70b_tp4_bf16": "layer_bwd_70b_tp4_bf16", "layer_fwd_70b_tp4_fp8": "layer_fwd_70b_tp4_fp8",
              "layer_bwd_70b_tp4_fp8": "layer_bwd_70b_tp4_fp8", "swiglu_fwd_triton_8192x7168": "swiglu_fwd_triton",
              "rms_norm_fwd_8192x8192": "rms_norm", "hbm_copy_4GiB": "hbm_copy"}
    cases = [c for c in power_cases(ctx) if c[0] in wanted]
    shares = (0.5,) if quick else (0.25, 0.5, 0.75)
    ctx.plan(1 + len(cases) * len(shares))
    torch.zeros(1, device="cuda")
    if not ctx.item("idle with context"):
        pass
    with ctx.meter as meter:
        time.sleep(0.5)
        begin = time.perf_counter()
        time.sleep(ctx.cfg["window"])
        idle = mean_or_none(ctx.gather(meter.window(begin, time.perf_counter())[0]))
    for phase, _, _, _, _, kernels, make in cases:
        call = None
        for share in shares:
            if not ctx.item(f"{phase} at {share}"):
                continue
            call = call or ctx.attempt(phase, make)
            if call is None:
                continue
            result = ctx.attempt(phase, lambda: duty(ctx, call, bench(call, 0.03, 1), share, ctx.cfg["window"]))
            every = [e for e in ctx.gather(result) if e]
            if not every:
                continue
            busy, op_s = statistics.fmean(e[0] for e in every), statistics.fmean(e[1] for e in every)
            mean = mean_or_none([e[2] for e in every])
            ctx.row("power_duty", op=wanted[phase], busy_share=busy, op_s=op_s / kernels,
                    watts_each=join_each([e[2] for e in every], 1), watts_mean=mean,
                    active_w_implied=idle + (mean - idle) / busy if mean and idle and busy > 0 else None)
        call = None
        gc.collect()


# ---------------------------------------------------------------------------------------------------------------------
# Several GPUs.

def collective(op, size, world, rank, group=None):
    """A call of one collective; size: bytes of the full buffer of a rank. Group: all ranks, perhaps with other options."""
    n = max(world, size // 2)
    dist = torch.distributed
    full, part = rand(n), rand(max(1, n // world))
    even = full[:part.numel() * world]
    if op == "all_reduce":
        full.zero_()  # sums stay finite
        return lambda: dist.all_reduce(full, group=group)
    if op == "all_gather":
        return lambda: dist.all_gather_into_tensor(even, part, group=group)
    if op == "reduce_scatter":
        return lambda: dist.reduce_scatter_tensor(part, even, group=group)
    if op == "all_to_all":
        out = torch.empty_like(even)
        return lambda: dist.all_to_all_single(out, even, group=group)
    out = torch.empty_like(full)  # sendrecv: a ring, each rank sends to the next and receives from the one before

    def ring():
        ops = [dist.P2POp(dist.isend, full, (rank + 1) % world), dist.P2POp(dist.irecv, out, (rank - 1) % world)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
    return ring


def bench_together(ctx, call, graph=False):
    """Seconds per call, the slowest rank's median of bursts; all ranks make the same number of calls."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    keep, unit = None, 1
    if graph:
        unit = 20
        keep = capture([call], unit)
        call = keep.replay
        call()
    estimate = max(ctx.gather(timed([call], 3)))
    count = max(2, min(3000, round(ctx.cfg["burst"] / estimate)))
    samples = []
    for _ in range(ctx.cfg["bursts"]):
        ctx.gather(None)
        time.sleep(0.05)
        samples.append(timed([call], count) / unit)
    torch.cuda.synchronize()
    del keep
    return max(ctx.gather(statistics.median(samples)))


OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv")


def section_collectives(ctx):
    sizes = [2**10, 2**20, 2**26] if ctx.cfg["quick"] else [2**p for p in range(10, 31, 2)] + [134217728]
    ctx.plan(len(OPS) * len(sizes) + 1)
    for op in OPS:
        for size in sorted(sizes):
            if not ctx.item(f"{op} {size} on {ctx.world}"):
                continue
            call = collective(op, size, ctx.world, ctx.rank)
            ctx.row("collectives", ranks=ctx.world, op=op, bytes=size,
                    seconds=ctx.attempt(f"{op} {size}", bench_together, ctx, call))
            if size <= 2**24 and op != "sendrecv":
                ctx.row("collectives_graph", ranks=ctx.world, op=op, bytes=size,
                        seconds=ctx.attempt(f"{op} {size} graph", bench_together, ctx, call, True))
    if ctx.item("host issue"):
        call = collective("all_reduce", 1024, ctx.world, ctx.rank)
        ctx.row("host_issue", machine=processor(), op=f"all_reduce_1024B_{ctx.world}_ranks", kernels=1,
                host_s_each=ctx.attempt("host issue", host_time, call, 50))


def together(ctx, kernel, kernel_s, other, other_s):
    """(kernel s, collective s, W): both at once on their own streams. Counts are balanced so that both end together; the times
    are medians of three bursts (below the board's limit), the power is that of a long window."""
    main, side = torch.cuda.current_stream(), torch.cuda.Stream()
    bursts, watts = [], None
    for span in (0.12, 0.12, 0.12, 0.12, 0.12, ctx.cfg["window"]):
        n, m = ctx.gather((max(4, round(span / kernel_s)), max(4, round(span / other_s))))[0]
        events = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        torch.cuda.synchronize()
        time.sleep(0.05)
        ctx.gather(None)
        with ctx.meter as meter:
            begin = time.perf_counter()
            events[0].record(main)
            events[2].record(side)
            done = 0
            for i in range(n):
                kernel()
                while done < m * (i + 1) // n:
                    with torch.cuda.stream(side):
                        other()
                    done += 1
            events[1].record(main)
            events[3].record(side)
            torch.cuda.synchronize()
            end = time.perf_counter()
            watts = meter.window(begin + 0.4 * (end - begin), end)[0]  # the board's controller needs a moment
        mine = events[0].elapsed_time(events[1]) * 1e-3 / n, events[2].elapsed_time(events[3]) * 1e-3 / m
        kernel_s, other_s = (statistics.fmean(v) for v in zip(*ctx.gather(mine)))
        bursts.append((kernel_s, other_s))
    kernel_s, other_s = (statistics.median(v) for v in zip(*bursts[2:5]))
    return kernel_s, other_s, mean_or_none(ctx.gather(watts))


def steady_watts(ctx, call, seconds, each):
    """Mean W of all ranks while all make the same number of calls (collectives: no rank may stop early)."""
    count = max(ctx.gather(max(4, round(seconds / each))))
    with ctx.meter as meter:
        begin = time.perf_counter()
        for i in range(count):
            call()
            if i % 50 == 49:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        watts = meter.window(begin, time.perf_counter())[0]
    return mean_or_none(ctx.gather(watts))


def section_interference(ctx):
    pool = GemmPool(16384 * 8192)
    kernels = [("gemm_bf16_8192x14336x8192", pool.bf16("y=x*w^T", 8192, 14336, 8192)),
               ("gemm_bf16_8192x2560x8192", pool.bf16("y=x*w^T", 8192, 2560, 8192))]
    if pool.a8 is not None:
        kernels.append(("gemm_fp8_8192x14336x8192", pool.fp8("y=x*w^T", 8192, 14336, 8192)))
    pair = ctx.attempt("attention", attention_pair, "cudnn", 1, 16, 16, 8192, 8192, 128, "causal")
    if pair:
        kernels += [("attention_fwd_16x8192x128", pair[0]), ("attention_bwd_16x8192x128", pair[1])]
    x, w = rand(8192, 8192), rand(8192)
    kernels.append(("rms_norm_fwd_8192x8192", lambda: F.rms_norm(x, (8192,), w, 1e-5)))
    options = torch.distributed.ProcessGroupNCCL.Options()
    options.is_high_priority_stream = True
    first = torch.distributed.new_group(backend="nccl", pg_options=options)
    talks = [("all_gather", 134217728, ""), ("reduce_scatter", 134217728, ""), ("all_reduce", 268435456, ""),
             ("all_gather", 134217728, "_high_priority"), ("all_reduce", 268435456, "_high_priority")]
    if ctx.cfg["quick"]:
        kernels, talks = kernels[:1], talks[2:4]
    ctx.plan(1 + (1 + len(kernels)) * len(talks))
    if ctx.item("gemm 8192 and all-reduce 256 MiB") and ctx.world == 2:
        gemm, talk = pool.bf16("y=x*w^T", 8192, 8192, 8192), collective("all_reduce", 2**28, 2, ctx.rank)
        alone, talk_alone = ctx.attempt("gemm", bench_together, ctx, gemm), ctx.attempt("talk", bench_together, ctx, talk)
        one = ctx.attempt("gemm sustained", sustain, ctx, gemm, ctx.cfg["window"])
        ctx.row("interference", case="gemm_only", gemm_8192_bf16_s=alone, watts_mean=mean_or_none(ctx.gather(one and one[0])))
        ctx.row("interference", case="allreduce_only_256MiB", all_reduce_256MiB_2ranks_s=talk_alone,
                watts_mean=ctx.attempt("talk sustained", steady_watts, ctx, talk, ctx.cfg["window"], talk_alone))
        both = ctx.attempt("both", together, ctx, gemm, alone, talk, talk_alone)
        if both:
            ctx.row("interference", case="both", gemm_8192_bf16_s=both[0], all_reduce_256MiB_2ranks_s=both[1], watts_mean=both[2])
    for op, size, priority in talks:
        talk = collective(op, size, ctx.world, ctx.rank, first if priority else None)
        talk_alone = ctx.attempt(op, bench_together, ctx, talk)
        if ctx.item(op + priority):
            ctx.row("interference_tp", ranks=ctx.world, kernel="none", collective=op + priority, bytes=size,
                    collective_alone_s=talk_alone,
                    watts_mean=ctx.attempt(op, steady_watts, ctx, talk, ctx.cfg["window"], talk_alone))
        for name, kernel in kernels:
            if not ctx.item(f"{name} beside {op}{priority}"):
                continue
            alone = ctx.attempt(name, bench_together, ctx, kernel)
            both = ctx.attempt(f"{name} beside {op}", together, ctx, kernel, alone, talk, talk_alone) or (None, None, None)
            ctx.row("interference_tp", ranks=ctx.world, kernel=name, collective=op + priority, bytes=size, kernel_alone_s=alone,
                    kernel_both_s=both[0], collective_alone_s=talk_alone, collective_both_s=both[1], watts_mean=both[2])


# ---------------------------------------------------------------------------------------------------------------------
# Experts, products of few rows, long sequences, messages between pipeline stages.

def section_few_rows(ctx):
    """Products of few tokens: what a small micro-batch or one expert's share leaves of a matrix product."""
    quick = ctx.cfg["quick"]
    widths = [(768, 2048), (1536, 4096), (2048, 2048), (4096, 4096), (3072, 12288), (12288, 3072), (14336, 4096), (8192, 8192), (16384, 6656)]
    rows = (128, 1024) if quick else (64, 128, 256, 512, 1024, 1536, 2048, 3072, 4096)
    shapes = [(m, n, k) for n, k in (widths[:3] if quick else widths) for m in rows]
    ctx.plan(len(shapes))
    pool = GemmPool(max(max(m * k, n * k, m * n) for m, n, k in shapes))
    for m, n, k in shapes:
        if not ctx.item(f"{m} x {n} x {k}"):
            continue
        label = f"few rows {m} x {n} x {k}"
        fp8 = None
        if pool.a8 is not None:
            fp8 = ctx.attempt(label + " fp8", ctx.bench, pool.fp8("y=x*w^T", m, n, k), True)
        ctx.row("few_rows", m=m, n=n, k=k, bf16_s=ctx.attempt(label, ctx.bench, pool.bf16("y=x*w^T", m, n, k), True), fp8_e4m3_s=fp8)


def section_experts(ctx):
    """Grouped products (one kernel for all experts of a rank) in their three forms, and what moves tokens to experts and back."""
    quick = ctx.cfg["quick"]
    shapes = [(8, 1024, 4096, 2048), (64, 512, 2048, 2048)] if quick else [
        (e, r, n, k)
        for n, k in ((2048, 2048), (1536, 2048), (2048, 768), (2880, 2880), (5760, 2880), (4096, 7168), (7168, 2048), (28672, 4096))
        for e, r in ((4, 256), (8, 128), (8, 512), (8, 2048), (16, 1024), (32, 256), (64, 64), (64, 512), (128, 256))
        if e * n * k < 2.5e9]
    moves = [(4096, 2048, 64, 8), (4096, 4096, 128, 8)] if quick else [
        (4096, 2048, 64, 8), (8192, 2048, 128, 8), (4096, 4096, 128, 8), (4096, 7168, 256, 8), (8192, 2880, 32, 4), (8192, 4096, 8, 2)]
    ctx.plan(len(shapes) + len(moves))
    for e, r, n, k in shapes:
        if not ctx.item(f"grouped {e} x {r} x {n} x {k}"):
            continue
        x, w, g = rand(e * r, k), rand(e, n, k), rand(e * r, n)
        ends = torch.arange(1, e + 1, device="cuda", dtype=torch.int32) * r
        forms = {"y=x*w^T": lambda: torch._grouped_mm(x, w.transpose(-2, -1), offs=ends),
                 "dx=g*w": lambda: torch._grouped_mm(g, w, offs=ends),
                 "dw=g^T*x": lambda: torch._grouped_mm(g.t(), x, offs=ends)}
        loop = {"y=x*w^T": lambda: [torch.mm(x[i * r:(i + 1) * r], w[i].t()) for i in range(e)]}
        for form, call in forms.items():
            label = f"grouped {form} {e} x {r} x {n} x {k}"
            ctx.row("grouped", experts=e, rows_each=r, n=n, k=k, form=form, seconds=ctx.attempt(label, ctx.bench, call),
                    loop_s=ctx.attempt(label + " loop", ctx.bench, loop[form], True) if form in loop else None)
        del x, w, g
    for t, h, e, top in moves:
        if not ctx.item(f"permutation {t} x {h}, {top} of {e}"):
            continue
        x, router, scores = rand(t, h), rand(e, h), rand(t, e).float()
        weights, choice = torch.topk(scores, top, dim=-1)
        order = torch.argsort(choice.reshape(-1), stable=True)
        source = order // top
        routed, out = rand(t * top, h), torch.zeros(t, h, device="cuda", dtype=torch.bfloat16)
        gates = weights.reshape(-1)[order].to(torch.bfloat16)[:, None]
        b = 2 * h
        calls = [("router_product", (t + e) * b + 2 * t * e, lambda: F.linear(x, router)),
                 ("softmax_topk", 8 * t * e, lambda: torch.topk(torch.softmax(scores, dim=-1), top, dim=-1)),
                 ("argsort_choice", 16 * t * top, lambda: torch.argsort(choice.reshape(-1), stable=True)),
                 ("bincount", 8 * t * top, lambda: torch.bincount(choice.reshape(-1), minlength=e)),
                 ("index_select", 2 * t * top * b, lambda: x.index_select(0, source)),
                 ("scale_rows", 2 * t * top * b, lambda: routed * gates),
                 ("index_add", 3 * t * top * b, lambda: out.index_add(0, source, routed)),
                 ("index_select_backward", 2 * t * top * b + t * b, lambda: torch.zeros_like(out).index_add_(0, source, routed))]
        for name, size, call in calls:
            ctx.row("permutation", op=name, tokens=t, hidden=h, experts=e, top_k=top, bytes_read_plus_written=size,
                    seconds=ctx.attempt(name, ctx.bench, call), kernels=ctx.attempt(name + " kernels", kernel_count, call),
                    host_s=ctx.attempt(name + " host", host_time, call, 50))


def bias_calls(rows, hidden, inner, experts):
    """{name: (forward, backward)} of experts that carry biases, as eager kernels: what stands around the grouped products.

    The gated activation clamps its two halves and joins them before the fused product with the gates (FP32, one a row); the
    bias of the down product is scaled by the gates and added expert by expert, in FP32."""
    split = [rows // experts] * experts
    up = rand(rows, 2 * inner).requires_grad_()
    gates = rand(rows, 1).float().requires_grad_()
    down = rand(rows, hidden).requires_grad_()
    biases = [rand(hidden).requires_grad_() for _ in range(experts)]

    def clamped():
        gate, linear = up.chunk(2, -1)
        return torch.cat((gate.clamp(max=7.0), linear.clamp(min=-7.0, max=7.0)), -1)

    def biased():
        parts = [t + b * p for t, b, p in zip(down.split(split), biases, gates.split(split))]
        return torch.cat(parts).to(down.dtype)

    def scaled():
        gate, linear = up.chunk(2, -1)
        return (gate * torch.sigmoid(1.702 * gate) * (linear + 1.0) * gates).to(up.dtype)

    def pair(forward, leaves):
        out = forward()
        g = torch.randn_like(out)
        return forward, lambda: torch.autograd.grad(out, leaves, g, retain_graph=True)

    return {"clamp_halves": pair(clamped, [up]), "down_bias": pair(biased, [down, gates, *biases]),
            "gated_unfused": pair(scaled, [up, gates])}


def section_expert_biases(ctx):
    """What biases and clamps of experts cost beside the grouped products: kernels, device and host time."""
    shapes = [(4096, 2880, 2880, 4)] if ctx.cfg["quick"] else [
        (rows, 2880, 2880, experts) for rows, experts in ((16384, 2), (16384, 16), (65536, 2), (65536, 16))] + [(32768, 2048, 768, 16)]
    ctx.plan(len(shapes))
    for rows, hidden, inner, experts in shapes:
        if not ctx.item(f"{rows} rows, {experts} experts"):
            continue
        for name, calls in (ctx.attempt("biases", bias_calls, rows, hidden, inner, experts) or {}).items():
            for way, call in zip(("forward", "backward"), calls):
                label = f"{name} {way} {rows} {experts}"
                ctx.row("expert_biases", op=name, way=way, rows=rows, hidden=hidden, inner=inner, experts=experts,
                        seconds=ctx.attempt(label, ctx.bench, call), kernels=ctx.attempt(label + " kernels", kernel_count, call),
                        host_s=ctx.attempt(label + " host", host_time, call, 20))


def rotary_scaled_pair(batch, heads, dim):
    """(forward, backward) of rotary positions whose sines and cosines carry a factor, as eager BF16 kernels."""
    x = rand(4096, batch, heads, dim).requires_grad_()
    angles = torch.randn(4096, 1, 1, dim, device="cuda")

    def forward():
        cos, sin = ((f(angles) * 1.35).to(x.dtype) for f in (torch.cos, torch.sin))
        turned, rest = x[..., :dim], x[..., dim:]
        one, two = torch.chunk(turned, 2, -1)
        return torch.cat((turned * cos + torch.cat((-two, one), -1) * sin, rest), -1)

    g = torch.randn_like(forward())
    out = forward()
    return forward, lambda: torch.autograd.grad(out, x, g, retain_graph=True)


def drop_pair(tokens, experts, top_k):
    """(forward, backward) of dropping the tokens beyond each expert's capacity, with a factor of 1."""
    choice, chosen = torch.randn(tokens, experts, device="cuda").topk(top_k, 1)
    gates = torch.zeros(tokens, experts, device="cuda").scatter(1, chosen, choice.softmax(-1)).requires_grad_()

    def forward():
        kept = torch.topk(gates, k=-(-tokens * top_k // experts), dim=0, sorted=False)[1]
        return gates * torch.zeros_like(gates).scatter(0, kept, 1).bool()

    out = forward()
    g = torch.randn_like(out)
    return forward, lambda: torch.autograd.grad(out, gates, g, retain_graph=True)


def eager_section(ctx, file, columns, shapes, pair):
    """Rows of eager kernels, forward and backward: device seconds, kernels and the host's time to issue them."""
    ctx.plan(len(shapes))
    for shape in shapes:
        label = file + " " + " x ".join(str(n) for n in shape)
        if not ctx.item(label):
            continue
        for way, call in zip(("forward", "backward"), ctx.attempt(label, pair, *shape) or ()):
            ctx.row(file, way=way, **columns(*shape), seconds=ctx.attempt(label, ctx.bench, call),
                    kernels=ctx.attempt(label + " kernels", kernel_count, call), host_s=ctx.attempt(label + " host", host_time, call, 20))


def section_rotary_scaled(ctx):
    eager_section(ctx, "rotary_scaled", lambda b, h, d: {"tokens": 4096 * b, "heads": h, "head_dim": d},
                  [(1, 8, 64)] if ctx.cfg["quick"] else [(b, h, 64) for b in (1, 4) for h in (8, 64)], rotary_scaled_pair)


def latent_rotary_pair(batch, heads):
    """(forward, backward) of what lies between latent attention's up-projections and its scores, as eager BF16 kernels:
    heads are taken apart, their last 64 turned (even and odd places first put into halves), joined again, one key's
    positions copied for all heads, values made contiguous."""
    q = rand(4096, batch, heads, 192).requires_grad_()
    kv = rand(4096, batch, heads, 256).requires_grad_()
    k_turned = rand(4096, batch, 1, 64).requires_grad_()
    angles = torch.randn(4096, 1, 1, 64, device="cuda")

    def turn(x):
        x = torch.cat((x[..., 0::2], x[..., 1::2]), -1)
        cos, sin = ((f(angles) * 1.2).to(x.dtype) for f in (torch.cos, torch.sin))
        one, two = torch.chunk(x, 2, -1)
        return x * cos + torch.cat((-two, one), -1) * sin

    def forward():
        q_rest, q_turned = torch.split(q, [128, 64], -1)
        k_rest, value = torch.split(kv, [128, 128], -1)
        query = torch.cat((q_rest, turn(q_turned)), -1)
        key = torch.cat((k_rest, turn(k_turned).expand(-1, -1, heads, -1)), -1)
        return query, key, value.contiguous()

    out = forward()
    g = [torch.randn_like(o) for o in out]
    return forward, lambda: torch.autograd.grad(out, (q, kv, k_turned), g, retain_graph=True)


def by_expert_kernels():
    """Kernels that bring tokens to experts and back, a program for each token, that look at every expert in turn (as
    Transformer Engine's did before topk << experts was taken care of, its pull request 1927)."""
    import triton
    import triton.language as tl
    globals()["tl"] = tl  # kernels find names in their module
    blocks = [triton.Config({"BLOCK": b}) for b in (256, 512, 1024, 2048, 4096)]

    @triton.autotune(configs=blocks, key=["hidden", "experts"])
    @triton.jit
    def spread(rows, places, out, tokens, experts, hidden, BLOCK: tl.constexpr):
        token = tl.program_id(0).to(tl.int64)
        start = 0
        while start < hidden:
            at = start + tl.arange(0, BLOCK)
            row = tl.load(rows + token * hidden + at, mask=at < hidden)
            for expert in range(experts):
                place = tl.load(places + expert * tokens + token).to(tl.int64)
                if place != -1:
                    tl.store(out + place * hidden + at, row, mask=at < hidden)
            start += BLOCK

    @triton.autotune(configs=blocks, key=["hidden", "experts"])
    @triton.jit
    def gather(rows, places, out, tokens, experts, hidden, BLOCK: tl.constexpr):
        token = tl.program_id(0).to(tl.int64)
        start = 0
        while start < hidden:
            at = start + tl.arange(0, BLOCK)
            total = tl.zeros((BLOCK,), dtype=tl.float32)
            for expert in range(experts):
                place = tl.load(places + expert * tokens + token).to(tl.int64)
                if place != -1:
                    total += tl.load(rows + place * hidden + at, mask=at < hidden).to(tl.float32)
            tl.store(out + token * hidden + at, total.to(tl.bfloat16), mask=at < hidden)
            start += BLOCK

    return spread, gather


def by_expert_pair(tokens, hidden, experts, top_k):
    """(to the experts, back) by kernels that look at every expert; each is the other's backward pass too."""
    spread, gather = by_expert_kernels()
    chosen = torch.randn(tokens, experts, device="cuda").topk(top_k, 1)[1]
    choice = torch.zeros(tokens, experts, device="cuda", dtype=torch.bool).scatter(1, chosen, True).T.contiguous()
    places = torch.where(choice, choice.flatten().cumsum(0).view(experts, tokens) - 1, -1).to(torch.int32)
    rows, out = rand(tokens, hidden), empty(tokens * top_k, hidden)
    return (lambda: spread[(tokens,)](rows, places, out, tokens, experts, hidden),
            lambda: gather[(tokens,)](out, places, rows, tokens, experts, hidden))


def group_router_pair(tokens, experts, top_k):
    """(forward, backward) of a choice among groups of experts by sigmoid scores, with its balance loss and the drop of
    tokens beyond a capacity of 1, as eager FP32 kernels."""
    logits = torch.randn(tokens, experts, device="cuda").requires_grad_()
    bias = torch.randn(experts, device="cuda") * 0.01

    def forward():
        scores = torch.sigmoid(logits)
        leaning = scores + bias
        best = leaning.view(tokens, 8, experts // 8).topk(2, -1)[0].sum(-1).topk(4, -1, sorted=False)[1]
        open_groups = torch.zeros(tokens, 8, device="cuda").scatter(1, best, 1)
        open_experts = open_groups.unsqueeze(-1).expand(-1, -1, experts // 8).reshape(tokens, experts)
        chosen = leaning.masked_fill(~open_experts.bool(), float("-inf")).topk(top_k, -1, sorted=False)[1]
        picked = torch.gather(scores, 1, chosen)
        picked = 2.5 * picked / (picked.sum(-1, keepdim=True) + 1e-20)
        gates = torch.zeros_like(logits).scatter(1, chosen, picked)
        choice = torch.zeros_like(logits).int().scatter(1, chosen, 1).bool()
        share = scores / (scores.sum(-1, keepdim=True) + 1e-20)
        balance = torch.sum(share.sum(0) * choice.sum(0)) * (experts * 1e-4 / (top_k * tokens * tokens))
        kept = torch.topk(gates, k=-(-tokens * top_k // experts), dim=0, sorted=False)[1]
        return gates * torch.zeros_like(gates).scatter(0, kept, 1).bool(), balance

    out = forward()
    g = [torch.randn_like(o) for o in out]
    return forward, lambda: torch.autograd.grad(out, logits, g, retain_graph=True)


def section_group_router(ctx):
    eager_section(ctx, "group_router", lambda t, e, k: {"tokens": t, "experts": e, "top_k": k},
                  [(2048, 256, 8)] if ctx.cfg["quick"] else [(2048, 256, 8), (4096, 256, 8)], group_router_pair)


def section_latent_rotary(ctx):
    eager_section(ctx, "latent_rotary", lambda b, h: {"tokens": 4096 * b, "heads": h},
                  [(1, 16)] if ctx.cfg["quick"] else [(1, 16), (1, 64), (1, 128), (2, 64)], latent_rotary_pair)


def section_by_expert(ctx):
    shapes = [(4096, 2048, 128, 8)] if ctx.cfg["quick"] else [
        (2048, 7168, 256, 8), (4096, 7168, 256, 8), (2048, 7168, 64, 8), (2048, 7168, 8, 2), (4096, 4096, 128, 8), (4096, 2048, 128, 8),
        (8192, 2048, 128, 8), (16384, 2048, 128, 8), (1024, 6144, 8, 2), (4096, 2880, 128, 4)]
    eager_section(ctx, "by_expert", lambda t, h, e, k: {"tokens": t, "hidden": h, "experts": e, "top_k": k}, shapes, by_expert_pair)


def section_drop_over_capacity(ctx):
    eager_section(ctx, "drop_over_capacity", lambda t, e, k: {"tokens": t, "experts": e, "top_k": k},
                  [(2048, 64, 8)] if ctx.cfg["quick"] else [(4096, 128, 8), (8192, 128, 8), (16384, 128, 8), (4096, 256, 8), (2048, 256, 8)],
                  drop_pair)


def window_pair(batch, heads, seq, dim, window):
    """(forward, backward) of FlashAttention 2 with a causal window of `window` tokens."""
    def make():
        return torch.randn(batch, seq, heads, dim, device="cuda", dtype=torch.bfloat16)
    q, k, v, g = make(), make(), make(), make()
    how = {"window_size_left": window - 1, "window_size_right": 0} if window else {}
    fwd, bwd = torch.ops.aten._flash_attention_forward, torch.ops.aten._flash_attention_backward
    def forward():
        return fwd(q, k, v, None, None, seq, seq, 0.0, True, False, **how)
    out = forward()
    return forward, lambda: bwd(g, q, k, v, out[0], out[1], None, None, seq, seq, 0.0, True, out[2], out[3], **how)


def section_attention_windows(ctx):
    """Causal windows of FlashAttention 2, forward and backward, against the whole sequence (window 0)."""
    shapes = [(1, 16, 4096, 64, w) for w in (0, 128)] if ctx.cfg["quick"] else [
        (b, h, s, d, w) for b, h, s, d in ((1, 64, 4096, 64), (1, 64, 8192, 64), (1, 32, 8192, 128), (4, 64, 4096, 64)) for w in (0, 128, 512, 1024, 4096)]
    ctx.plan(len(shapes))
    for batch, heads, seq, dim, window in shapes:
        if not ctx.item(f"{batch} x {heads} x {seq} x {dim}, window {window}"):
            continue
        label = f"window {batch} x {heads} x {seq} x {dim} {window}"
        pair = ctx.attempt(label, window_pair, batch, heads, seq, dim, window)
        ctx.row("attention_windows", batch=batch, heads=heads, seq=seq, head_dim=dim, window=window,
                fwd_s=pair and ctx.attempt(label + " forward", ctx.bench, pair[0]),
                bwd_s=pair and ctx.attempt(label + " backward", ctx.bench, pair[1]))


def section_attention_long(ctx):
    shapes = [(8, 32768, 128)] if ctx.cfg["quick"] else [
        (h, s, d) for h, s, d in ((8, 32768, 128), (4, 65536, 128), (2, 131072, 128), (16, 32768, 128), (8, 32768, 64), (2, 131072, 64), (4, 131072, 128))]
    ctx.plan(len(shapes))
    for heads, seq, dim in shapes:
        if not ctx.item(f"{heads} x {seq} x {dim}"):
            continue
        for backend in ("cudnn", "flash"):
            label = f"attention {backend} {heads} x {seq} x {dim}"
            pair = ctx.attempt(label, attention_pair, backend, 1, heads, heads, seq, seq, dim, "causal")
            ctx.row("attention_long", backend=backend, heads=heads, seq=seq, head_dim=dim,
                    fwd_s=pair and ctx.attempt(label + " forward", ctx.bench, pair[0]),
                    bwd_s=pair and ctx.attempt(label + " backward", ctx.bench, pair[1]))
            del pair


def section_attention_latent(ctx):
    """Heads of latent attention (192 channels of queries and keys, 128 of values) beside plain ones of 128 and 192."""
    shapes = [(1, 16, 4096)] if ctx.cfg["quick"] else [(1, 16, 4096), (1, 64, 4096), (1, 128, 4096), (2, 64, 4096), (1, 64, 8192)]
    sizes = ((192, 128), (128, 128), (192, 192))
    ctx.plan(len(shapes) * len(sizes))
    for batch, heads, seq in shapes:
        for dim, value_dim in sizes:
            label = f"attention {batch} x {heads} x {seq} x {dim}, {value_dim}"
            if not ctx.item(label):
                continue
            pair = ctx.attempt(label, attention_pair, "cudnn", batch, heads, heads, seq, seq, dim, "causal", value_dim)
            ctx.row("attention_latent", batch=batch, heads=heads, seq=seq, head_dim=dim, value_dim=value_dim,
                    fwd_s=pair and ctx.attempt(label + " forward", ctx.bench, pair[0]),
                    bwd_s=pair and ctx.attempt(label + " backward", ctx.bench, pair[1]))
            del pair


def product(w, later):
    """x -> x w^T; the weight's gradient is computed in backward, or put into the list `later`."""
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return F.linear(x, w)

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors

            def weight_gradient():
                grad = g.flatten(0, -2).t() @ x.flatten(0, -2)
                w.grad = grad if w.grad is None else w.grad.add_(grad)

            if later is None:
                weight_gradient()
            else:
                later.append(weight_gradient)
            return g @ w

    return Product.apply


class Part:
    """A piece of a layer that is issued for itself, as a schedule does that joins one micro-batch's forward with another
    one's backward: on a stream of its own, behind the pieces before it, cut out of the graph of gradients, gradients of
    weights after those of inputs."""

    def __init__(self, function, stream, later):
        self.function, self.stream, self.later, self.done = function, stream, later, torch.cuda.Event()
        self.kept = []  # inputs and outputs of micro-batches whose backward is to come

    def forward(self, x):
        with torch.cuda.stream(self.stream):
            self.done.wait(self.stream)
            x = x.detach().requires_grad_()
            y = self.function(x)
            self.kept.append((x, y))
            self.done.record(self.stream)
        return y

    def backward(self, g):
        with torch.cuda.stream(self.stream):
            self.done.wait(self.stream)
            x, y = self.kept.pop(0)
            torch.autograd.backward(y, g)
            self.done.record(self.stream)
        return x.grad

    def weight_gradients(self):
        if not self.later:
            return
        with torch.cuda.stream(self.stream):
            self.done.wait(self.stream)
            for call in self.later:
                call()
            self.later.clear()
            self.done.record(self.stream)


def joined_layers(layers, cut):
    """A call that issues a forward of one micro-batch and the backward of the one before, layer by layer in four parts
    each (attention, dispatch, experts, combine) on two streams, or each as a whole."""
    tokens, hidden, heads = 64, 256, 4
    rows = torch.randperm(tokens, device="cuda")
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    parts = []
    for _ in range(layers):
        later = [[] if cut else None for _ in range(4)]
        qkv, projection = (product(rand(n * hidden, hidden), later[0]) for n in (3, 1))
        up, down = (product(rand(n * hidden, hidden), later[2]) for n in (2, 1))

        def attention(x, qkv=qkv, projection=projection):
            q, k, v = qkv(F.rms_norm(x, (hidden,))).view(1, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
            return x + projection(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(1, tokens, hidden))

        def experts(x, up=up, down=down):
            gate, value = torch.chunk(up(x), 2, -1)
            return down(F.silu(gate) * value)

        functions = (attention, lambda x: x[:, rows], experts, lambda x: x[:, rows])
        parts.append([Part(f, streams[k % 2], later[k]) for k, f in enumerate(functions)])
    x0, g0, before = rand(1, tokens, hidden), rand(1, tokens, hidden), []

    def whole():
        y = x0.detach().requires_grad_()
        for layer in parts:
            for part in layer:
                y = part.function(y)
        before.append(y)
        if len(before) > 1:
            torch.autograd.backward(before.pop(0), g0)

    def joined():
        x, g = x0, g0
        back = bool(parts[0][0].kept)
        for ahead, behind in zip(parts, reversed(parts)):
            for f, b in zip(ahead, reversed(behind)):
                g = b.backward(g) if back else g
                x = f.forward(x)
                b.weight_gradients()

    return joined if cut else whole


def section_joined_parts(ctx):
    shapes = [(n, cut) for n in ((4,) if ctx.cfg["quick"] else (4, 8, 16)) for cut in (False, True)]
    ctx.plan(len(shapes))
    for layers, cut in shapes:
        if ctx.item(f"{layers} layers, {'joined parts' if cut else 'whole'}"):
            call = joined_layers(layers, cut)
            call()
            ctx.row("joined_parts", layers=layers, way="joined" if cut else "whole", parts=8 * layers, host_s=ctx.attempt("host", host_time, call, 20),
                    processor=processor())


def section_send_recv(ctx):
    """What a pipeline stage pays to hand over: one way, both ways in one batch, both ways one after the other."""
    sizes = (2**20, 2**25) if ctx.cfg["quick"] else (2**12, 2**18, 2**20, 2**23, 2**25, 2**27)
    ctx.plan(3 * len(sizes))
    d, rank, pairs = torch.distributed, ctx.rank, ctx.world // 2 * 2
    peer = rank ^ 1
    for size in sizes:
        mine, theirs = empty(size // 2), empty(size // 2)

        def one_way():
            if rank < pairs:
                d.send(mine, peer) if rank % 2 == 0 else d.recv(theirs, peer)

        def batch():
            for work in d.batch_isend_irecv([d.P2POp(d.isend, mine, peer), d.P2POp(d.irecv, theirs, peer)]):
                work.wait()

        def in_turn():
            for even in (0, 1):
                work = d.batch_isend_irecv([d.P2POp(d.isend, mine, peer) if rank % 2 == even else d.P2POp(d.irecv, theirs, peer)])
                for w in work:
                    w.wait()
        for name, call in (("one_way", one_way), ("batch", batch), ("in_turn", in_turn)):
            if ctx.item(f"{name} {size}"):
                count = 30 if size > 2**24 else 200
                for _ in range(5):
                    call()
                ctx.gather(None)
                torch.cuda.synchronize()
                seconds = timed([call], count)
                ctx.gather(None)
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(20):
                    call()
                host = (time.perf_counter() - begin) / 20
                torch.cuda.synchronize()
                ctx.row("send_recv", ranks=2, case=name, bytes=size, seconds=seconds, host_s=host)


SECTIONS = {  # name: (function, runs on one GPU, runs on several, its own NCCL group, files)
    "gemm": (section_gemm, True, False, False, ["gemm"]),
    "attention": (section_attention, True, False, False, ["attention", "attention_backends"]),
    "memory_ops": (section_memory, True, False, False, ["memory_ops", "host_issue"]),
    "fp8_linear": (section_fp8, True, False, False, ["fp8_linear"]),
    "power": (section_power, True, True, False, ["power", "sustained", "burst_length"]),
    "power_duty": (section_duty, True, True, False, ["power_duty"]),
    "train_steps": (section_steps, True, True, True, ["train_steps", "train_steps_graph"]),
    "collectives": (section_collectives, False, True, True, ["collectives", "collectives_graph"]),
    "few_rows": (section_few_rows, True, False, False, ["few_rows"]),
    "experts": (section_experts, True, False, False, ["grouped", "permutation"]),
    "expert_biases": (section_expert_biases, True, False, False, ["expert_biases"]),
    "rotary_scaled": (section_rotary_scaled, True, False, False, ["rotary_scaled"]),
    "group_router": (section_group_router, True, False, False, ["group_router"]),
    "latent_rotary": (section_latent_rotary, True, False, False, ["latent_rotary"]),
    "by_expert": (section_by_expert, True, False, False, ["by_expert"]),
    "drop_over_capacity": (section_drop_over_capacity, True, False, False, ["drop_over_capacity"]),
    "attention_windows": (section_attention_windows, True, False, False, ["attention_windows"]),
    "attention_latent": (section_attention_latent, True, False, False, ["attention_latent"]),
    "attention_long": (section_attention_long, True, False, False, ["attention_long"]),
    "joined_parts": (section_joined_parts, True, False, False, ["joined_parts"]),
    "send_recv": (section_send_recv, False, True, True, ["send_recv"]),
    "interference": (section_interference, False, True, True, ["interference", "interference_tp"]),
}


# ---------------------------------------------------------------------------------------------------------------------
# Processes and files.

def child(name, rank, world, cfg, conn, port, skip):
    code = 0
    warnings.filterwarnings("ignore")  # PyTorch's own, about its internals
    try:
        torch.cuda.set_device(rank)
        if world > 1:
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
            limit = datetime.timedelta(seconds=300)
            if SECTIONS[name][3]:
                torch.distributed.init_process_group("nccl", timeout=limit, device_id=torch.device("cuda", rank))
                cfg["gloo"] = torch.distributed.new_group(backend="gloo", timeout=limit)
            else:
                torch.distributed.init_process_group("gloo", timeout=limit)
                cfg["gloo"] = None
        torch.manual_seed(1234 + rank)
        torch.cuda.set_stream(torch.cuda.Stream())  # graphs are captured on the stream that everything runs on
        ctx = Context(name, rank, world, cfg, conn, skip)
        if rank == 0 and not ctx.meter.nvml.has_counter:
            ctx.warn("no energy counter: power is sampled" if ctx.meter.nvml.watts() else "no power reading: watts stay blank")
        SECTIONS[name][0](ctx)
        ctx.gather(None)
        if world > 1 and rank == 0:
            time.sleep(0.5)  # the store lives in this process
    except BaseException:  # noqa: BLE001: told to the parent, which goes on
        conn.send(("warn", f"{name}, rank {rank}: " + traceback.format_exc()))
        code = 3
    conn.send(("end", code))
    conn.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # no tear-down of a possibly broken context


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Progress:
    def __init__(self):
        self.last = 0.0
        self.tty = sys.stderr.isatty()

    def say(self, text):
        if self.tty:
            sys.stderr.write("\r\033[K")
        sys.stderr.write(text.rstrip() + "\n")
        sys.stderr.flush()

    def item(self, name, begun, first, index, total, label):
        now = time.monotonic()
        if now - self.last < (0.2 if self.tty else 15.0):
            return
        self.last = now
        gone, done = now - begun, max(0, index - first)
        eta = f", about {gone / done * (total - index + 1):.0f} s left" if done >= 3 and total else ""
        text = f"{name} {index}/{total}, {gone:.0f} s{eta}: {label}"
        if self.tty:
            sys.stderr.write("\r\033[K" + text[:118])
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()


def run_section(name, world, cfg, rows, progress):
    """Runs one section in processes of its own, again after the measurement that broke it. Rows are added to `rows`."""
    mp = multiprocessing.get_context("spawn")
    from multiprocessing import connection
    skip, begun, tries = 0, time.monotonic(), 0
    while True:
        port, index, clean = free_port(), skip, False
        procs, pipes = [], []
        left = dict(cfg, section_limit=cfg["section_limit"] - (time.monotonic() - begun))
        for rank in range(world):
            ours, theirs = mp.Pipe(duplex=False)
            proc = mp.Process(target=child, args=(name, rank, world, left, theirs, port, skip), daemon=True)
            proc.start()
            theirs.close()
            procs.append(proc)
            pipes.append(ours)
        open_pipes, codes = list(pipes), {}
        while open_pipes:
            ready = connection.wait(open_pipes, timeout=cfg["silence"])
            if not ready:
                progress.say(f"warning: {name}: no word for {cfg['silence']} s, stopped")
                break
            for pipe in ready:
                try:
                    message = pipe.recv()
                except EOFError:
                    open_pipes.remove(pipe)
                    continue
                kind = message[0]
                if kind == "row":
                    rows.setdefault(message[1], []).append(message[2])
                elif kind == "warn":
                    note = message[1]
                    progress.say(note if note.startswith("note:") else f"warning: {name}: {note}")
                elif kind == "item":
                    index = message[1]
                    progress.item(name, begun, skip, *message[1:])
                elif kind == "end":
                    codes[pipes.index(pipe)] = message[1]
            if any(code != 0 for code in codes.values()) and world > 1:
                break  # the other ranks would wait for ever
        clean = len(codes) == world and all(code == 0 for code in codes.values())
        for proc in procs:
            proc.join(timeout=5 if clean else 1)
            if proc.is_alive():
                proc.kill()
                proc.join()
        tries += 1
        if clean or tries > 4 or index <= skip:
            if not clean:
                progress.say(f"warning: {name}: not finished (measurement {index})")
            return
        skip = index
        progress.say(f"{name}: goes on after measurement {index} in new processes")


def write_csv(path, columns, rows):
    """Whole or not at all."""
    temporary = path + ".part"
    with open(temporary, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([row.get(c, "") for c in columns])
    os.replace(temporary, path)


def read_csv(path):
    with open(path, newline="") as source:
        return list(csv.DictReader(source))


def environment():
    nvml = Nvml(0)
    nccl = ""
    try:
        nccl = ".".join(str(v) for v in torch.cuda.nccl.version())
    except Exception:  # noqa: BLE001: only a note
        pass
    return {"date": datetime.date.today().isoformat(), "gpus": torch.cuda.device_count(), "gpu": torch.cuda.get_device_name(0),
            "memory_bytes": torch.cuda.get_device_properties(0).total_memory, "driver": nvml.driver(),
            "power_limit_w": nvml.limit_w(),
            "torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "nccl": nccl,
            "triton": getattr(triton, "__version__", ""), "energy_counter": nvml.has_counter,
            "nccl_nvls": os.environ.get("NCCL_NVLS_ENABLE", ""), "python": sys.version.split()[0]}


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="DIR", default="gpu_lab_out", help="folder for the CSV files (made if missing)")
    parser.add_argument("--only", metavar="LIST", help="sections, separated by commas: " + ", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="few shapes, short bursts and windows")
    parser.add_argument("--gpus", type=int, metavar="N", help="how many GPUs to use (default: all that are visible, at most 8)")
    parser.add_argument("--ranks", metavar="LIST", help="group sizes for collectives (default: 2, 4, 8 up to the GPUs)")
    parser.add_argument("--burst", type=float, metavar="S", help="seconds of one burst (default 0.12; quick 0.03)")
    parser.add_argument("--bursts", type=int, metavar="N", help="bursts a measurement; the median counts (default 3; quick 1)")
    parser.add_argument("--window", type=float, metavar="S", help="seconds of one power window (default 3; quick 0.8)")
    parser.add_argument("--section-limit", type=float, metavar="S", default=3600.0,
                        help="a section leaves out what it has not begun after so many seconds (default 3600)")
    parser.add_argument("--append", action="store_true", help="keep rows of earlier runs in DIR (default: replace the file)")
    parser.add_argument("--id", default="lab-g", help="start of the ids in train_steps (default lab-g)")
    parser.add_argument("--id-base", type=int, default=0, metavar="N", help="first id is N+1 (default 0)")
    parser.add_argument("--traces", action="store_true", help="show where a failed measurement failed")
    args = parser.parse_args(argv)
    names = list(SECTIONS) if args.only is None else [n.strip() for n in args.only.split(",") if n.strip()]
    for name in names:
        if name not in SECTIONS:
            parser.error(f"--only: unknown section '{name}'; allowed: {', '.join(SECTIONS)}")
    try:
        ranks = None if args.ranks is None else [int(r) for r in args.ranks.split(",")]
    except ValueError:
        parser.error("--ranks: whole numbers, separated by commas")
    for flag in ("burst", "bursts", "window", "section_limit", "gpus"):
        value = getattr(args, flag)
        if value is not None and not value > 0:
            parser.error(f"--{flag.replace('_', '-')}: must be above zero")
    return args, names, ranks


def main(argv=None):
    args, names, ranks = parse(argv)
    if torch is None or not torch.cuda.is_available():
        sys.stderr.write("measure_gpu: needs PyTorch with CUDA and a GPU that it can see\n")
        return 2
    gpus = min(torch.cuda.device_count(), args.gpus or 8, 8)
    ranks = ranks or [r for r in (2, 4, 8) if r <= gpus] or [gpus]
    if any(r < 1 or r > gpus for r in ranks):
        sys.stderr.write(f"measure_gpu: --ranks: between 2 and {gpus}\n")
        return 2
    quick = args.quick
    cfg = {"quick": quick, "burst": args.burst or (0.03 if quick else 0.12), "bursts": args.bursts or (1 if quick else 3),
           "window": args.window or (0.8 if quick else 3.0), "section_limit": args.section_limit, "silence": 90,
           "id": args.id, "id_base": args.id_base, "traces": args.traces, "gloo": None}
    os.makedirs(args.out, exist_ok=True)
    progress = Progress()
    env = environment()
    progress.say(", ".join(f"{k} {v}" for k, v in env.items()))
    rows = {}
    if args.append:
        for file in COLUMNS:
            path = os.path.join(args.out, file + ".csv")
            if os.path.exists(path):
                rows[file] = read_csv(path)
    started = time.monotonic()
    for name in names:
        _, alone, several, _, _ = SECTIONS[name]
        worlds = []
        if name in ("collectives", "interference"):
            worlds = [r for r in ranks if r > 1]
        elif alone and (gpus == 1 or not several):
            worlds = [1]
        elif several:
            worlds = [gpus]
        if not worlds:
            progress.say(f"{name}: needs two GPUs, left out")
            continue
        begun = time.monotonic()
        for world in worlds:
            try:
                run_section(name, world, cfg, rows, progress)
            except KeyboardInterrupt:
                progress.say(f"{name}: interrupted; what was measured is written")
                names = []
                break
            finally:
                for file, lines in rows.items():
                    write_csv(os.path.join(args.out, file + ".csv"), COLUMNS[file], lines)
        progress.say(f"{name}: {time.monotonic() - begun:.0f} s")
        if not names:
            break
    env["sections"], env["seconds"] = names, round(time.monotonic() - started)
    path = os.path.join(args.out, "environment.json")
    with open(path + ".part", "w") as out:
        json.dump(env, out, indent=1)
        out.write("\n")
    os.replace(path + ".part", path)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
