"""A plain GPT, a plain Llama and their training loop, against which ours is measured.

Written for this comparison, with torch's own modules and nothing clever, so that it says what
anybody gets who writes such a loop.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """The sizes of the network."""

    depth: int
    width: int
    heads: int
    vocab: int
    context: int
    hidden: int = 0  # units of Llama's feed-forward layer; 0: a GPT, with 4 x width


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How it is trained, and on what."""

    steps: int
    warmup_steps: int
    peak_learning_rate: float
    weight_decay: float
    betas: tuple[float, float]
    gradient_clip: float = 1.0
    device: str = "cpu"
    autocast_bfloat16: bool = False
    compile: bool = False


class Attention(nn.Module):
    """Causal self-attention with one product for queries, keys and values."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.projection = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        """What attention adds to the stream."""
        rows, positions, width = x.shape
        q, k, v = (
            part.view(rows, positions, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out: Tensor = self.projection(y.transpose(1, 2).reshape(rows, positions, width))
        return out


class Block(nn.Module):
    """Attention and a feed-forward layer, each after a norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attention = Attention(shape)
        self.up = nn.Linear(shape.width, 4 * shape.width)
        self.gelu = nn.GELU()
        self.projection = nn.Linear(4 * shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        """The stream after the block."""
        x = x + self.attention(self.norm1(x))
        out: Tensor = x + self.projection(self.gelu(self.up(self.norm2(x))))
        return out


class GPT(nn.Module):
    """Tokens in, logits out; all matrices start at 0.02, projections at 0.02 / sqrt(2 depth)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocab, shape.width)
        self.positions = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.depth))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocab, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                narrower = math.sqrt(2 * shape.depth) if "projection" in name else 1.0
                nn.init.normal_(parameter, 0.0, 0.02 / narrower)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the token after each."""
        x = self.tokens(tokens) + self.positions(
            torch.arange(tokens.shape[1], device=tokens.device)
        )
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


class LlamaBlock(nn.Module):
    """The same with RMS norms, rotary positions, SwiGLU, and no biases, as transformers has it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, width = shape.heads, shape.width
        self.norm1, self.norm2 = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)
        self.q, self.k, self.v, self.attention_projection = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.gate = nn.Linear(width, shape.hidden, bias=False)
        self.up = nn.Linear(width, shape.hidden, bias=False)
        self.projection = nn.Linear(shape.hidden, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """The stream after the block."""
        rows, positions, width = x.shape
        normed = self.norm1(x)
        q, k, v = (
            part(normed).view(rows, positions, self.heads, -1).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        q, k = (part * cos + rotate_half(part) * sin for part in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_projection(y.transpose(1, 2).reshape(rows, positions, width))
        normed = self.norm2(x)
        out: Tensor = x + self.projection(F.silu(self.gate(normed)) * self.up(normed))
        return out


def rotate_half(x: Tensor) -> Tensor:
    """The second half, negated, before the first."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Llama(nn.Module):
    """Tokens in, logits out."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocab, shape.width)
        self.blocks = nn.ModuleList(LlamaBlock(shape) for _ in range(shape.depth))
        self.norm = nn.RMSNorm(shape.width, 1e-5)
        self.head = nn.Linear(shape.width, shape.vocab, bias=False)
        head_dim = shape.width // shape.heads
        rates = 10_000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
        angles = torch.arange(shape.context)[:, None] * rates
        self.register_buffer("cos", angles.repeat(1, 2).cos())
        self.register_buffer("sin", angles.repeat(1, 2).sin())
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, 0.0, 0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the token after each."""
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits: Tensor = self.head(self.norm(x))
        return logits


class Loop:
    """A network and its optimiser; call it with a batch to make a step."""

    def __init__(self, shape: Shape, options: Options, *, seed: int) -> None:
        torch.manual_seed(seed)
        self.options, self.made = options, 0
        self.model = (Llama(shape) if shape.hidden else GPT(shape)).to(options.device)
        matrices = [p for p in self.model.parameters() if p.ndim == 2]
        vectors = [p for p in self.model.parameters() if p.ndim == 1]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": options.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            betas=options.betas,
            fused=options.device == "cuda",
        )
        self.called = torch.compile(self.model) if options.compile else self.model

    def __call__(self, rows: Tensor) -> Tensor:
        """Train on rows of context + 1 tokens; their mean loss before the step."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate(self.made, self.options)
        loss = self.loss(rows.to(self.options.device))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.options.gradient_clip)
        self.optimiser.step()
        self.made += 1
        return loss.detach()

    def loss(self, rows: Tensor) -> Tensor:
        """Mean nats per token."""
        device = torch.device(self.options.device).type
        with torch.autocast(device, torch.bfloat16, enabled=self.options.autocast_bfloat16):
            logits: Tensor = self.called(rows[:, :-1])
            return F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())

    @torch.no_grad()
    def heldout(self, batches: Iterable[Tensor]) -> float:
        """Mean nats per token over all rows."""
        total, count = 0.0, 0
        for rows in batches:
            tokens = rows.shape[0] * (rows.shape[1] - 1)
            total += float(self.loss(rows.to(self.options.device))) * tokens
            count += tokens
        return total / count


def rate(step: int, options: Options) -> float:
    """Linear warm-up to the peak, then half a cosine to zero."""
    if step < options.warmup_steps:
        return options.peak_learning_rate * (step + 1) / options.warmup_steps
    done = (step - options.warmup_steps) / max(1, options.steps - options.warmup_steps)
    return options.peak_learning_rate * 0.5 * (1.0 + math.cos(math.pi * done))


def train(loop: Loop, batches: Iterable[Tensor]) -> Iterator[float]:
    """The loss of each step, as the steps are made."""
    for rows in batches:
        yield float(loop(rows))
