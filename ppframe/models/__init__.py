"""Models as lists of chunks: plain modules, which a config names by import path."""

from ppframe.models.gpt import Block, Embedding, Head
from ppframe.models.mlp import Linear

__all__ = ["Block", "Embedding", "Head", "Linear"]
