from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from ppframe.errors import ConfigError
from ppframe.models.gpt import Block, CausalSelfAttention, Embedding, FeedForward, Head


def whole_model(dropout: float = 0.0) -> nn.Sequential:
    torch.manual_seed(0)
    blocks = [Block(dim=8, heads=2, dropout=dropout) for _ in range(2)]
    return nn.Sequential(Embedding(dim=8, seq_len=6, vocab_size=11), *blocks, Head(dim=8))


def attention_by_hand(attention: CausalSelfAttention, x: Tensor) -> Tensor:
    """One position and head at a time, from the definition."""
    batch, length, dim = x.shape
    width = dim // attention.heads
    query, key, value = attention.qkv(x).split(dim, dim=-1)
    joined = torch.zeros_like(x)
    for head in range(attention.heads):
        part = slice(head * width, (head + 1) * width)
        for sample in range(batch):
            for now in range(length):
                seen = key[sample, : now + 1, part]
                scores = seen @ query[sample, now, part] / math.sqrt(width)
                share = scores.exp() / scores.exp().sum()
                joined[sample, now, part] = share @ value[sample, : now + 1, part]
    out: Tensor = attention.out(joined)
    return out


def test_embedding_is_the_sum_of_token_and_position():
    embedding = Embedding(dim=4, seq_len=3, vocab_size=5)
    out = embedding(torch.tensor([[4, 0], [1, 1]]))
    token, position = embedding.token.weight, embedding.position.weight
    assert out.shape == (2, 2, 4)
    assert torch.equal(out[0, 0], token[4] + position[0])
    assert torch.equal(out[1, 1], token[1] + position[1])


@pytest.mark.parametrize("dim", [1, 6, 7])
def test_positions_start_as_waves_in_which_a_distance_is_the_same_everywhere(dim):
    position = Embedding(dim=dim, seq_len=12).position.weight
    assert position.requires_grad
    assert position.shape == (12, dim)
    if dim % 2 == 0:
        products = position @ position.T
        for distance in range(12):
            diagonal = products.diagonal(distance)
            torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))


def test_embedding_refuses_a_sequence_that_is_too_long():
    embedding = Embedding(dim=4, seq_len=3)
    with pytest.raises(ConfigError, match=r"but is 3 \(sequence of 4 tokens\)") as caught:
        embedding(torch.zeros(1, 4, dtype=torch.int64))
    assert caught.value.path == "model.seq_len"


def test_attention_is_the_softmax_over_what_came_before():
    torch.manual_seed(0)
    attention = CausalSelfAttention(dim=6, heads=3).double()
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    torch.testing.assert_close(attention(x), attention_by_hand(attention, x))


def test_block_norms_before_each_half_and_adds_its_input():
    torch.manual_seed(0)
    block = Block(dim=8, heads=2).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    middle = x + attention_by_hand(block.attention, block.norm_attention(x))
    hidden = nn.functional.gelu(block.mlp.up(block.norm_mlp(middle)))
    torch.testing.assert_close(block(x), middle + block.mlp.down(hidden))


def test_head_gives_a_logit_for_each_byte():
    head = Head(dim=4)
    x = torch.randn(2, 3, 4)
    normed = nn.functional.layer_norm(x, (4,))
    assert head(x).shape == (2, 3, 256)
    torch.testing.assert_close(head(x), normed @ head.linear.weight.T)


def test_a_later_token_changes_no_earlier_logit():
    model = whole_model()
    tokens = torch.randint(0, 11, (1, 6))
    changed = tokens.clone()
    changed[0, 3] = (changed[0, 3] + 1) % 11
    before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3], after[:, 3])


def test_every_parameter_gets_a_gradient():
    model = whole_model()
    model(torch.randint(0, 11, (2, 6))).logsumexp(-1).sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert without == []


def test_dropout_acts_in_training_alone():
    model = whole_model(dropout=0.5)
    tokens = torch.randint(0, 11, (2, 6))
    assert not torch.equal(model(tokens), model(tokens))
    model.eval()
    assert torch.equal(model(tokens), model(tokens))


@pytest.mark.parametrize(
    ("build", "phrase"),
    [
        (lambda: Block(dim=10, heads=4), "`dim` must be a multiple of `heads`, but is 10"),
        (lambda: Block(dim=8, heads=0), "`heads` must be at least 1, but is 0"),
        (lambda: Block(dim=8, heads=2, dropout=1.0), r"in \[0, 1\), but is 1.0"),
        (lambda: FeedForward(dim=8, mlp_ratio=0), "`mlp_ratio` must be at least 1"),
        (lambda: Embedding(dim=0, seq_len=4), "`dim` must be at least 1"),
        (lambda: Head(dim=4, vocab_size=-1), "`vocab_size` must be at least 1, but is -1"),
    ],
)
def test_sizes_out_of_range_are_refused(build, phrase):
    with pytest.raises(ConfigError, match=phrase):
        build()


def test_all_that_a_block_refuses_is_told_at_once():
    with pytest.raises(ConfigError) as caught:
        Block(dim=-4, heads=0, mlp_ratio=0, dropout=1.0)
    told = [fault.message.split()[0] for fault in caught.value.faults]
    assert told == ["`dim`", "`heads`", "`mlp_ratio`", "`dropout`"]
