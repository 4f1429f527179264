"""ppframe: pipeline-parallel training from a config."""
