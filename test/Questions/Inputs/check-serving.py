"""Checks the JSON of a program that serves: its figures by their formulas, and
that both phases place weights alike."""

import json
import math
import sys

report = json.load(sys.stdin)
serving = report["serving"]
prefill, decode = serving["prefill"], serving["decode"]
text = serving["words"]
separate = "; transfer " in text

# Of every program that is checked with it.
B, G, p, prompt = 8, 16, 1, 48
chips = report["hardware"]["chips"]
prefill_chips = prefill["hardware"]["chips"]
# USD an hour.
price = {"tpu_v5e": 1.2, "h100": 10.8}
tp, t = prefill["time"]["scheduled_s"], decode["time"]["scheduled_s"]
m = serving["insertion_s"]
wait = 0 if separate else B / p * (tp + m)


def check(name, expected):
    found = serving[name]
    assert math.isclose(found, expected, rel_tol=1e-9), f"{name}: {found}, not {expected}"


check("first_token_s", tp)
check("token_s", t)
check("tokens_per_s", B / t)
check("tokens_per_s_per_chip", B / t / chips)
check("tokens_per_s_with_prefill", B * G / (G * t + wait))
check("requests_per_s", B / (G * t + wait))
check("prefill_servers_per_decode_server", (tp / p) / (G * t / B))
rate = chips * price[decode["hardware"]["name"]] / 3600
prefill_rate = prefill_chips * price[prefill["hardware"]["name"]] / 3600
check("usd_per_million_prompt_tokens", prefill_rate * tp / (p * prompt) * 1e6)
check("usd_per_million_output_tokens", rate * t / B * 1e6)
inserted = 0 if separate else m
check("chip_seconds_per_request", prefill_chips * (tp + inserted) / p + chips * G * t / B)
check("usd_per_request", prefill_rate * (tp + inserted) / p + rate * G * t / B)
assert serving["token_s_last"] >= serving["token_s"]
assert serving["chip_seconds_bound"] <= serving["chip_seconds_per_request"] * (1 + 1e-9)

# The caches of decode stay while prefill runs on the same machine.
caches = sum(tensor["local_bytes"] for tensor in decode["tensors"]
             if tensor["kind"] == "state")
beside = 0 if separate else caches
assert serving["memory_bytes"] == max(decode["memory"]["peak"],
                                      prefill["memory"]["peak"] + beside)

weights = [{tensor["name"]: tensor["sharding"] for tensor in phase["tensors"]
            if tensor["kind"] == "weight"} for phase in (prefill, decode)]
assert separate or weights[0] == weights[1], weights
assert len(weights[0]) == 6
