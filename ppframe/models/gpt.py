"""A byte-level GPT as three kinds of model chunk: `Embedding`, `Block` (repeated), `Head`.

The chunks know nothing of each other or of pipelines: `nn.Sequential` of them is the whole model.
"""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppframe.errors import ConfigError, Fault

_EMBEDDING_STD = 0.1
_LONGEST_WAVE = 1000.0  # about, in positions per radian
_RESIDUAL_GAIN = 0.02  # a stack of any depth starts out close to the identity


@final
class Embedding(nn.Module):
    """Bytes to vectors: a learned vector per token plus a learned one per position.

    The vectors of positions start out as sines and cosines, in which a fixed distance is a fixed
    rotation: attention to the token before is found in a fraction of the steps that a random start
    takes.

    Args:
        dim: width D of the vectors.
        seq_len: the longest sequence that can be embedded, in tokens.
        vocab_size: number of different tokens; 256 for bytes.

    Reference:
        Vaswani et al., Attention Is All You Need, 2017, arXiv 1706.03762, section 3.5; there the
        waves are longer, interleaved, and not learned.
    """

    def __init__(self, *, dim: int, seq_len: int, vocab_size: int = 256) -> None:
        super().__init__()
        _require(dim=dim, seq_len=seq_len, vocab_size=vocab_size)
        self.token = nn.Embedding(vocab_size, dim)
        self.position = nn.Embedding(seq_len, dim)
        nn.init.normal_(self.token.weight, std=_EMBEDDING_STD)
        with torch.no_grad():
            self.position.weight.copy_(_waves(seq_len, dim))

    def forward(self, tokens: Tensor) -> Tensor:
        """Embed a batch of sequences.

        Args:
            tokens: int64 [B, T], values below `vocab_size`, T at most `seq_len`.

        Returns:
            [B, T, D].

        Raises:
            ConfigError: a sequence is longer than `seq_len`.
        """
        length, longest = tokens.shape[-1], self.position.num_embeddings
        if length > longest:
            raise ConfigError(
                f"must be at least the length of the sequences, but is {longest} "
                f"(sequence of {length} tokens). Raise it, or shorten the sequences.",
                path="model.seq_len",
            )
        positions = torch.arange(length, device=tokens.device)
        embedded: Tensor = self.token(tokens) + self.position(positions)
        return embedded


@final
class Block(nn.Module):
    """Pre-norm transformer block: causal self-attention, then a two-layer MLP, both residual.

    Args:
        dim: width D.
        heads: number of attention heads; divides `dim`.
        mlp_ratio: hidden width of the MLP, in multiples of `dim`.
        dropout: probability of zeroing an attention weight or an output of either half.

    Reference:
        Radford et al., Language Models are Unsupervised Multitask Learners, 2019, section 2.3.
    """

    def __init__(self, *, dim: int, heads: int, mlp_ratio: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        _require(dropout=dropout, dim=dim, heads=heads, mlp_ratio=mlp_ratio)
        self.norm_attention = nn.LayerNorm(dim)
        self.attention = CausalSelfAttention(dim=dim, heads=heads, dropout=dropout)
        self.norm_mlp = nn.LayerNorm(dim)
        self.mlp = FeedForward(dim=dim, mlp_ratio=mlp_ratio, dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, D] to [B, T, D]; position t sees positions up to t."""
        x = x + self.attention(self.norm_attention(x))
        x = x + self.mlp(self.norm_mlp(x))
        return x


@final
class CausalSelfAttention(nn.Module):
    """Multi-head attention in which a position sees itself and what stands before it.

    Args:
        dim: width D.
        heads: number of heads H; divides `dim`.
        dropout: probability of zeroing an attention weight, and an element of the output.

    Reference:
        Vaswani et al., Attention Is All You Need, 2017, arXiv 1706.03762, section 3.2.
    """

    def __init__(self, *, dim: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        _require(dropout=dropout, dim=dim, heads=heads)
        if dim % heads:
            raise ConfigError(
                f"`dim` must be a multiple of `heads`, but is {dim} (heads {heads}). "
                f"Change one of them; the heads' width is dim / heads."
            )
        self.heads = heads
        self.dropout = dropout
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = _residual_linear(dim, dim)
        self.out_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, D] to [B, T, D]."""
        batch, length, dim = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # each [B, H, T, D/H]
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, dropout_p=self.dropout if self.training else 0.0
        )
        joined = mixed.transpose(1, 2).reshape(batch, length, dim)
        attended: Tensor = self.out_dropout(self.out(joined))
        return attended


@final
class FeedForward(nn.Module):
    """Linear, GELU, linear.

    Args:
        dim: width D of input and output.
        mlp_ratio: hidden width in multiples of `dim`.
        dropout: probability of zeroing an element of the output.
    """

    def __init__(self, *, dim: int, mlp_ratio: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        _require(dropout=dropout, dim=dim, mlp_ratio=mlp_ratio)
        self.up = nn.Linear(dim, mlp_ratio * dim)
        self.down = _residual_linear(mlp_ratio * dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, D] to [B, T, D]."""
        hidden = functional.gelu(self.up(x))
        out: Tensor = self.dropout(self.down(hidden))
        return out


@final
class Head(nn.Module):
    """Final norm and a linear layer that gives a logit for each token.

    Args:
        dim: width D.
        vocab_size: number of different tokens V; 256 for bytes.
    """

    def __init__(self, *, dim: int, vocab_size: int = 256) -> None:
        super().__init__()
        _require(dim=dim, vocab_size=vocab_size)
        self.norm = nn.LayerNorm(dim)
        self.linear = nn.Linear(dim, vocab_size, bias=False)
        nn.init.normal_(self.linear.weight, std=dim**-0.5)  # logits of unit variance

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, D] to logits [B, T, V]."""
        logits: Tensor = self.linear(self.norm(x))
        return logits


def _waves(seq_len: int, dim: int) -> Tensor:
    """[seq_len, dim]: sines in the first half, cosines in the second, of the embeddings' scale."""
    exponents = torch.arange(0, dim, 2) / dim
    angles = torch.arange(seq_len)[:, None] * _LONGEST_WAVE**-exponents
    waves = torch.cat((angles.sin(), angles.cos()), dim=1)[:, :dim]
    return math.sqrt(2.0) * _EMBEDDING_STD * waves


def _residual_linear(in_features: int, out_features: int) -> nn.Linear:
    linear = nn.Linear(in_features, out_features)
    with torch.no_grad():
        linear.weight.mul_(_RESIDUAL_GAIN)
        linear.bias.zero_()
    return linear


def _require(*, dropout: float = 0.0, **sizes: int) -> None:
    """Refuse sizes below 1 and a `dropout` that is no probability, all at once."""
    faults = [
        Fault("", f"`{name}` must be at least 1, but is {size}. Raise it.")
        for name, size in sizes.items()
        if size < 1
    ]
    if not 0.0 <= dropout < 1.0:
        text = f"`dropout` must be in [0, 1), but is {dropout}. 0 switches it off."
        faults.append(Fault("", text))
    if faults:
        raise ConfigError(faults)
