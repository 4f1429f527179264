"""Datasets: batches that depend on the seed and the step alone."""

from ppframe.data.base import Batch, Dataset, random_stream
from ppframe.data.byte_text import ByteText, unigram_entropy
from ppframe.data.pylib import pylib
from ppframe.data.synthetic import Regression, synthetic
from ppframe.data.text import text

__all__ = [
    "Batch",
    "ByteText",
    "Dataset",
    "Regression",
    "pylib",
    "random_stream",
    "synthetic",
    "text",
    "unigram_entropy",
]
