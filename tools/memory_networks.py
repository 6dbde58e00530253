"""Networks whose steps measure_memory.py takes apart: adapters, experts, language models as torchtitan writes them."""
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import measure_gpu

BF16 = torch.bfloat16


class Lora(torch.nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        base.weight.requires_grad_(False)
        self.a = torch.nn.Linear(base.in_features, rank, bias=False, device="cuda", dtype=BF16)
        self.b = torch.nn.Linear(rank, base.out_features, bias=False, device="cuda", dtype=BF16)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


class Experts(torch.nn.Module):
    """Router, top-k, rows in expert order, grouped products, SwiGLU, gates, sum; equal rows an expert."""

    def __init__(self, hidden, ffn, experts, chosen):
        super().__init__()
        self.experts, self.chosen = experts, chosen
        self.router = torch.nn.Linear(hidden, experts, bias=False, device="cuda", dtype=BF16)
        self.up = torch.nn.Parameter(torch.randn(experts, hidden, 2 * ffn, device="cuda", dtype=BF16) * hidden ** -0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, ffn, hidden, device="cuda", dtype=BF16) * ffn ** -0.5)

    def forward(self, x):
        rows = x.view(-1, x.shape[-1])
        gates, _ = torch.topk(torch.softmax(self.router(rows).float(), -1), self.chosen, -1)
        count = rows.shape[0] * self.chosen
        order = (torch.arange(count, device=x.device) * 7919) % count  # balanced by force
        token = order // self.chosen
        taken = rows.index_select(0, token)
        ends = torch.arange(1, self.experts + 1, device=x.device, dtype=torch.int32) * (count // self.experts)
        gate, up = torch._grouped_mm(taken, self.up, ends).chunk(2, -1)
        out = torch._grouped_mm(F.silu(gate) * up, self.down, ends)
        out = out * gates.reshape(-1)[order].to(BF16).unsqueeze(-1)
        return torch.zeros_like(rows).index_add(0, token, out).view_as(x)


class ExpertLayer(measure_gpu.Layer):
    def __init__(self, hidden, heads, kv, ffn, dim, experts, chosen):
        super().__init__(hidden, heads, kv, 1, dim)
        del self.up, self.down
        self.moe = Experts(hidden, ffn, experts, chosen)

    def forward(self, x):
        batch, seq, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(batch, seq, -1, self.dim).transpose(1, 2).split((self.heads, self.kv, self.kv), 1)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.proj(a.transpose(1, 2).reshape(batch, seq, -1))
        return x + self.moe(self.n2(x))


class Block(torch.nn.Module):
    """A Llama block as torchtitan writes it: rotary position in FP32, repeated keys and values, three MLP matrices."""

    def __init__(self, hidden, heads, kv, ffn, dtype):
        super().__init__()
        self.heads, self.kv, self.dim = heads, kv, hidden // heads
        made = dict(bias=False, device="cuda", dtype=dtype)
        self.n1 = torch.nn.RMSNorm(hidden, device="cuda", dtype=dtype)
        self.n2 = torch.nn.RMSNorm(hidden, device="cuda", dtype=dtype)
        self.wq, self.wk, self.wv = (torch.nn.Linear(hidden, n * self.dim, **made) for n in (heads, kv, kv))
        self.wo = torch.nn.Linear(hidden, hidden, **made)
        self.w1, self.w3 = torch.nn.Linear(hidden, ffn, **made), torch.nn.Linear(hidden, ffn, **made)
        self.w2 = torch.nn.Linear(ffn, hidden, **made)

    def turn(self, x, angles):
        y = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(y * angles.view(1, x.shape[1], 1, -1)).flatten(3).type_as(x)

    def forward(self, x, angles):
        b, s, _ = x.shape
        h = self.n1(x)
        q, k, v = (w(h).view(b, s, -1, self.dim) for w in (self.wq, self.wk, self.wv))
        q, k = self.turn(q, angles), self.turn(k, angles)
        k, v = (t.repeat_interleave(self.heads // self.kv, 2) for t in (k, v))
        a = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.wo(a.transpose(1, 2).contiguous().view(b, s, -1))
        h = self.n2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class Language(torch.nn.Module):
    def __init__(self, c, dtype):
        super().__init__()
        self.recompute = c.get("recompute", "none")
        self.table = torch.nn.Embedding(c["vocabulary"], c["hidden"], device="cuda", dtype=dtype)
        self.blocks = torch.nn.ModuleList(Block(c["hidden"], c["heads"], c["kv"], c["ffn"], dtype) for _ in range(c["layers"]))
        self.norm = torch.nn.RMSNorm(c["hidden"], device="cuda", dtype=dtype)
        self.head = torch.nn.Linear(c["hidden"], c["vocabulary"], bias=False, device="cuda", dtype=dtype)
        turns = torch.outer(torch.arange(c["seq"], device="cuda"), 1.0 / 1e4 ** torch.linspace(0, 1, c["hidden"] // c["heads"] // 2, device="cuda"))
        self.angles = torch.polar(torch.ones_like(turns), turns)

    def forward(self, tokens):
        x = self.table(tokens)
        for block in self.blocks:
            if self.recompute == "full":
                x = checkpoint(block, x, self.angles, use_reentrant=False)
            elif self.recompute == "alternate":
                x = checkpoint(block, x, self.angles, use_reentrant=False, context_fn=every_other_product)
            else:
                x = block(x, self.angles)
        return self.head(self.norm(x))


def every_other_product():
    """Keep attention and every second product, as torchtitan's selective checkpoints by operation."""
    count = {}

    def policy(ctx, func, *args, **kwargs):
        name = str(func)
        if "mm.default" in name:
            count[ctx.is_recompute] = count.get(ctx.is_recompute, 0) + 1
            return CheckpointPolicy.MUST_SAVE if count[ctx.is_recompute] % 2 == 1 else CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE if "scaled_dot_product" in name else CheckpointPolicy.PREFER_RECOMPUTE
    return create_selective_checkpoint_contexts(policy)
