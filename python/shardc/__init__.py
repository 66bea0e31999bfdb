"""Sharding plans of shardc: the JSON report as objects.

    import shardc
    plan = shardc.plan("models/ffn.shd", hardware="tpu_v5e[4, 4]")
    plan.time.scheduled_s, plan.memory.peak

Needs the built `shardc`: on the PATH, or named by SHARDC."""

from ._plan import Fields, Plan, Report, ShardcError, Sweep, load, plan

__all__ = ["Fields", "Plan", "Report", "ShardcError", "Sweep", "load", "plan"]
