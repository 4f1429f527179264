"""Stages: what runs between two boundaries, and how a batch and a model are cut for it."""

from ppframe.stage.auxiliary import add_auxiliary_loss
from ppframe.stage.batch_loss import BatchLoss, LossWeights
from ppframe.stage.microbatch import Replicate, Split
from ppframe.stage.partition import partition_modules
from ppframe.stage.stage import Stage

__all__ = [
    "BatchLoss",
    "LossWeights",
    "Replicate",
    "Split",
    "Stage",
    "add_auxiliary_loss",
    "partition_modules",
]
