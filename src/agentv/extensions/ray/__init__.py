"""Run trials on the machines of a Ray cluster: `--executor ray`."""

EXECUTORS = {"ray": "agentv.extensions.ray.executor:pool_of"}
