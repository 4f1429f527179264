"""Training: what happens around a step of the pipeline."""
