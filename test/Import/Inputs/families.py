"""Compares small models with random weights: the program of a config, run by the
reference semantics, against the family in NumPy, written from its paper.

    families.py SHARDC RUN_PROGRAM FOLDER [FAMILY...]

The results are logits (of bert the encoder's values and the pooler's). They agree
to 1e-4; both compute in doubles. GELU is the tanh form (docs/Import.md#families).
"""

import json
import os
import re
import subprocess
import sys

import numpy as np

B, T, V, D = 2, 9, 40, 24
COMMON = {"vocab_size": V, "torch_dtype": "float32"}
LLAMA = COMMON | {
    "hidden_size": D,
    "intermediate_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


# ---- building blocks


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def layer_norm(x, weight, bias, eps):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * weight + bias


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def rotate(x, theta):
    """x: [batch, position, head, element]; element i turns with i + size / 2."""
    size = x.shape[-1]
    angles = np.outer(np.arange(x.shape[1]), theta ** (-np.arange(0, size, 2) / size))
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    a, b = x[..., : size // 2], x[..., size // 2 :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def heads_of(x, weight, bias=0.0):
    """weight: [width, heads..., size], all heads in one dimension."""
    flat = weight.reshape(weight.shape[0], -1, weight.shape[-1])
    bias = np.reshape(bias, (-1, weight.shape[-1])) if np.ndim(bias) else bias
    return np.einsum("btd,dnh->btnh", x, flat) + bias


def attend(q, k, v, scale=None, causal=True, window=None, cap=None, bias=0.0, sink=None):
    """Each group of query heads reads one head of keys and values."""
    group = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
    scores = np.einsum("btnh,bsnh->bnts", q, k)
    scores = scores * (q.shape[-1] ** -0.5 if scale is None else scale)
    if cap is not None:
        scores = cap * np.tanh(scores / cap)
    scores = scores + bias
    queries, keys = np.arange(q.shape[1])[:, None], np.arange(k.shape[1])[None, :]
    if causal:
        scores = np.where(keys <= queries, scores, -np.inf)
    if window is not None:
        scores = np.where(keys > queries - window, scores, -np.inf)
    if sink is not None:
        extra = np.broadcast_to(sink.reshape(1, -1, 1, 1), scores.shape[:3] + (1,))
        scores = np.concatenate([scores, extra], axis=-1)
    return np.einsum("bnts,bsnh->btnh", softmax(scores)[..., : k.shape[1]], v)


def joined(o, weight):
    """weight: [heads..., size, width]."""
    return np.einsum("btnh,nhd->btd", o, weight.reshape(-1, *weight.shape[-2:]))


def best(scores, count):
    """True at the greatest scores of each row."""
    order = np.argsort(-scores, axis=-1)[..., :count]
    chosen = np.zeros(scores.shape, bool)
    np.put_along_axis(chosen, order, True, axis=-1)
    return chosen


class Weights:
    """The weights of a program; `layer` are those of one of its layers."""

    def __init__(self, tensors, prefix="", suffix="", number=None):
        self.tensors, self.prefix = tensors, prefix
        self.suffix, self.number = suffix, number

    def layer(self, prefix, suffix, number):
        return Weights(self.tensors, prefix, suffix, number)

    def __getattr__(self, name):
        for known in (self.prefix + name + self.suffix, self.prefix + name):
            if known in self.tensors:
                tensor = self.tensors[known]
                return tensor if self.number is None else tensor[self.number]
        raise AttributeError(name)


# ---- families


def decoder(w, tokens, layers, *, norm, rotation, mlp, window=None, bias=False, scale=None,
            cap=None, sink=False, after=None):
    """Llama (Touvron et al. 2023) and those that differ in parts of it."""
    x = w.Wemb[tokens]
    if after is not None:  # Gemma
        x = x * np.sqrt(D)
    for number, layer in enumerate(layers):
        a = norm(x, layer.gattn)
        biases = (layer.bq, layer.bk, layer.bv) if bias else (0.0, 0.0, 0.0)
        q, k, v = (heads_of(a, weight, b) for weight, b in
                   zip((layer.Wq, layer.Wk, layer.Wv), biases))
        o = attend(rotate(q, rotation), rotate(k, rotation), v, scale=scale, cap=cap,
                   window=window(number) if window else None,
                   sink=layer.sinks if sink else None)
        o = joined(o, layer.Wo) + (layer.bo if sink else 0.0)
        x = x + (o if after is None else after(o, layer.gpost))
        h = mlp(norm(x, layer.gmlp), layer)
        x = x + (h if after is None else after(h, layer.glast))
    return norm(x, w.gout)


def gated(activation):
    return lambda m, w: (activation(m @ w.Wgate) * (m @ w.Wup)) @ w.Wdown


def llama(w, tokens):
    norm = lambda x, g: rms_norm(x, g, 1e-6)
    layers = [w.layer("", "", i) for i in range(2)]
    return decoder(w, tokens, layers, norm=norm, rotation=10000, mlp=gated(silu)) @ w.Wout


def qwen2(w, tokens):
    norm = lambda x, g: rms_norm(x, g, 1e-6)
    layers = [w.layer("", "", i) for i in range(2)]
    y = decoder(w, tokens, layers, norm=norm, rotation=10000, mlp=gated(silu), bias=True)
    return y @ w.Wout


def gemma2(w, tokens):
    """Gemma Team 2024: norms by 1 + w around both parts, capped scores and logits,
    every other layer with a window."""
    norm = lambda x, g: rms_norm(x, 1 + g, 1e-6)
    layers = [w.layer("x1." if i % 2 == 0 else "x.", "", i // 2) for i in range(4)]
    y = decoder(w, tokens, layers, norm=norm, rotation=10000, mlp=gated(gelu), after=norm,
                window=lambda i: 4 if i % 2 == 0 else None, scale=10**-0.5, cap=50.0)
    return 30.0 * np.tanh(y @ w.Wemb.T / 30.0)


def mixture(m, w, weights, expert):
    """Every expert of every token, weighted."""
    return sum(weights[..., e : e + 1] * expert(m, w, e) for e in range(weights.shape[-1]))


def plain_expert(m, w, e):
    return (silu(m @ w.Wgate[e]) * (m @ w.Wup[e])) @ w.Wdown[e]


def mixtral(w, tokens):
    """Jiang et al. 2024: softmax over the two best of the router's logits."""

    def mlp(m, layer):
        logits = m @ layer.Wrouter
        weights = softmax(np.where(best(logits, 2), logits, -np.inf))
        return mixture(m, layer, weights, plain_expert)

    norm = lambda x, g: rms_norm(x, g, 1e-5)
    layers = [w.layer("", "", i) for i in range(2)]
    return decoder(w, tokens, layers, norm=norm, rotation=1e6, mlp=mlp) @ w.Wout


def gpt_oss(w, tokens):
    """OpenAI 2025: sinks, biases, clamped SwiGLU, every other layer with a window."""

    def expert(m, layer, e):
        gate = np.minimum(m @ layer.Wgate[e] + layer.bgate[e], 7.0)
        up = np.clip(m @ layer.Wup[e] + layer.bup[e], -7.0, 7.0)
        return ((up + 1) * gate * sigmoid(1.702 * gate)) @ layer.Wdown[e] + layer.bdown[e]

    def mlp(m, layer):
        logits = m @ layer.Wrouter + layer.brouter
        weights = softmax(np.where(best(logits, 2), logits, -np.inf))
        return mixture(m, layer, weights, expert)

    norm = lambda x, g: rms_norm(x, g, 1e-5)
    layers = [w.layer("x1." if i % 2 == 0 else "x.", "", i // 2) for i in range(4)]
    y = decoder(w, tokens, layers, norm=norm, rotation=150000, mlp=mlp, bias=True, sink=True,
                window=lambda i: 3 if i % 2 == 0 else None)
    return y @ w.Wout


def deepseek_v2(w, tokens):
    """DeepSeek-AI 2024: keys and values from a latent, a rotated key for all heads,
    experts that all tokens use beside those that they pick."""
    norm = lambda x, g: rms_norm(x, g, 1e-6)
    x = w.Wemb[tokens]
    layers = [w.layer("x.", "", 0), w.layer("x.", ".2", 0), w.layer("x.", ".2", 1)]
    for number, layer in enumerate(layers):
        a = norm(x, layer.gattn)
        latent = norm(a @ layer.Wkv, layer.gkv)
        shared = rotate((a @ layer.Wkr)[:, :, None, :], 10000)
        k = heads_of(latent, layer.Wkn)
        k = np.concatenate([k, np.repeat(shared, k.shape[2], axis=2)], axis=-1)
        q = np.concatenate(
            [heads_of(a, layer.Wqn), rotate(heads_of(a, layer.Wqr), 10000)], axis=-1)
        x = x + joined(attend(q, k, heads_of(latent, layer.Wv)), layer.Wo)
        m = norm(x, layer.gmlp)
        if number == 0:
            x = x + gated(silu)(m, layer)
            continue
        scores = softmax(m @ layer.Wrouter)
        weights = np.where(best(scores, 2), scores, 0.0)
        common = (silu(m @ layer.Wgates) * (m @ layer.Wups)) @ layer.Wdowns
        x = x + mixture(m, layer, weights, plain_expert) + common
    return norm(x, w.gout) @ w.Wout


def gpt2(w, tokens):
    """Radford et al. 2019: learned positions, LayerNorm in front of each part."""
    x = w.Wemb[tokens] + w.Wpos[: tokens.shape[1]]
    for layer in (w.layer("", "", i) for i in range(2)):
        a = layer_norm(x, layer.gattn, layer.battn, 1e-5)
        q, k, v = (heads_of(a, weight, b) for weight, b in (
            (layer.Wq, layer.bq), (layer.Wk, layer.bk), (layer.Wv, layer.bv)))
        x = x + joined(attend(q, k, v), layer.Wo) + layer.bo
        m = layer_norm(x, layer.gmlp, layer.bmlp, 1e-5)
        x = x + gelu(m @ layer.Wup + layer.bup) @ layer.Wdown + layer.bdown
    return layer_norm(x, w.gout, w.bout, 1e-5) @ w.Wemb.T


def bloom(w, tokens):
    """Scao et al. 2022, with the biases of Press et al. 2022 by distance: slopes
    2^-2, 2^-4, ... of 4 heads, then 2^-1 and 2^-3 of those of 8."""
    slopes = np.array([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3])
    at = np.arange(tokens.shape[1])
    bias = slopes[:, None, None] * -(at[:, None] - at[None, :])
    x = layer_norm(w.Wemb[tokens], w.gemb, w.bemb, 1e-5)
    for layer in (w.layer("", "", i) for i in range(2)):
        a = layer_norm(x, layer.gattn, layer.battn, 1e-5)
        q, k, v = (heads_of(a, weight, b) for weight, b in (
            (layer.Wq, layer.bq), (layer.Wk, layer.bk), (layer.Wv, layer.bv)))
        x = x + joined(attend(q, k, v, bias=bias), layer.Wo) + layer.bo
        m = layer_norm(x, layer.gmlp, layer.bmlp, 1e-5)
        x = x + gelu(m @ layer.Wup + layer.bup) @ layer.Wdown + layer.bdown
    return layer_norm(x, w.gout, w.bout, 1e-5) @ w.Wemb.T


def bert(w, tokens, types):
    """Devlin et al. 2018: norms of the sums, no mask, a pooler of the first token."""
    norm = lambda x, g, b: layer_norm(x, g, b, 1e-12)
    x = norm(w.Wemb[tokens] + w.Wpos[: tokens.shape[1]] + w.Wtype[types], w.gemb, w.bemb)
    for layer in (w.layer("", "", i) for i in range(2)):
        q, k, v = (heads_of(x, weight, b) for weight, b in (
            (layer.Wq, layer.bq), (layer.Wk, layer.bk), (layer.Wv, layer.bv)))
        o = joined(attend(q, k, v, causal=False), layer.Wo) + layer.bo
        x = norm(x + o, layer.gpost, layer.bpost)
        h = gelu(x @ layer.Wup + layer.bup) @ layer.Wdown + layer.bdown
        x = norm(x + h, layer.glast, layer.blast)
    return {"x": x, "pooled": np.tanh(x[:, 0] @ w.Wpool + w.bpool)}


def t5(w, tokens, targets):
    """Raffel et al. 2020: biases by buckets of distances, scores that are not scaled,
    one table for both stacks and the logits."""

    def bias(table, both):
        at = np.arange(T)
        offsets = at[None, :] - at[:, None]  # key - query
        count, first = len(table), np.zeros((T, T), int)
        if both:
            count //= 2
            first = np.where(offsets > 0, count, 0)
            away = np.abs(offsets)
        else:
            away = np.maximum(-offsets, 0)
        exact = count // 2
        large = exact + np.floor(
            np.log(np.maximum(away, 1) / exact) / np.log(6 / exact) * (count - exact) + 1e-9)
        bucket = first + np.where(away < exact, away, np.minimum(large, count - 1).astype(int))
        return np.moveaxis(table[bucket], -1, 0)

    norm = lambda x, g: rms_norm(x, g, 1e-6)
    feed = lambda m, layer: np.maximum(m @ layer.Wup, 0) @ layer.Wdown

    def own(x, layer, causal, biases):
        a = norm(x, layer.gattn)
        q, k, v = heads_of(a, layer.Wq), heads_of(a, layer.Wk), heads_of(a, layer.Wv)
        return x + joined(attend(q, k, v, scale=1.0, causal=causal, bias=biases), layer.Wo)

    x = w.Wemb[tokens]
    for layer in (w.layer("", "", i) for i in range(2)):
        x = own(x, layer, False, bias(w.Wrel, True))
        x = x + feed(norm(x, layer.gmlp), layer)
    memory = norm(x, w.gmem)
    x = w.Wemb[targets]
    for layer in (w.layer("", ".2", i) for i in range(3)):
        x = own(x, layer, True, bias(w.Wnear, False))
        c = norm(x, layer.gcross)
        x = x + joined(attend(heads_of(c, layer.Cq), heads_of(memory, layer.Ck),
                              heads_of(memory, layer.Cv), scale=1.0, causal=False), layer.Co)
        x = x + feed(norm(x, layer.gmlp), layer)
    return norm(x, w.gout) @ w.Wemb.T * D**-0.5


FAMILIES = {
    "llama": (llama, LLAMA),
    "qwen2": (qwen2, LLAMA),
    "gemma2": (gemma2, LLAMA | {
        "num_hidden_layers": 4, "head_dim": 8, "query_pre_attn_scalar": 10, "sliding_window": 4}),
    "mixtral": (mixtral, LLAMA | {"num_local_experts": 4, "sliding_window": None}),
    "gpt_oss": (gpt_oss, LLAMA | {
        "num_hidden_layers": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 6,
        "sliding_window": 3}),
    "deepseek_v2": (deepseek_v2, LLAMA | {
        "num_hidden_layers": 3, "num_key_value_heads": 4, "q_lora_rank": None,
        "kv_lora_rank": 12, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6,
        "first_k_dense_replace": 1, "n_routed_experts": 4, "n_shared_experts": 2,
        "num_experts_per_tok": 2, "moe_intermediate_size": 10, "norm_topk_prob": False}),
    "gpt2": (gpt2, COMMON | {"n_embd": D, "n_layer": 2, "n_head": 4, "n_positions": 16}),
    "bloom": (bloom, COMMON | {"hidden_size": D, "n_layer": 2, "n_head": 6}),
    "bert": (bert, COMMON | {
        "hidden_size": D, "intermediate_size": 36, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 16}),
    "t5": (t5, COMMON | {
        "d_model": D, "d_ff": 30, "d_kv": 5, "num_heads": 4, "num_layers": 2,
        "num_decoder_layers": 3, "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 6}),
}


# ---- runs


def random_tensor(line, family, rng):
    kind, name, element, *shape = line.split()
    shape = [int(extent) for extent in shape]
    if element == "integer":
        return name, rng.integers(0, 2 if name == "types" else V, shape)
    last = name.split(".")[-2 if name[-1].isdigit() else -1]
    values = rng.normal(size=shape)
    if last.startswith("g"):  # scales of norms
        return name, (0.0 if family == "gemma2" else 1.0) + 0.2 * values
    return name, 0.4 * values


def compare(family, shardc, run_program, folder):
    model, config = FAMILIES[family]
    folder = os.path.join(folder, family)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        json.dump(config | {"model_type": family}, file)
    program = subprocess.run(
        [shardc, path, "--task=forward", f"--batch={B}", f"--sequence={T}", "--emit-program"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    path = os.path.join(folder, "model.shd")
    # An expert may get all tokens. With a slot for each nothing is dropped; without
    # `dropless` the number of slots is free.
    program = program.replace(", dropless=true", "")
    program = re.sub(r"^dim C = .*?(?=  //)", "dim C = T", program, flags=re.MULTILINE)
    with open(path, "w") as file:
        file.write(program.replace("output loss", "output logits"))
    declared = subprocess.run(
        [run_program, path], check=True, stdout=subprocess.PIPE, text=True).stdout
    rng = np.random.default_rng(24)
    tensors = dict(random_tensor(line, family, rng) for line in declared.splitlines())
    for name, tensor in tensors.items():
        tensor.tofile(os.path.join(folder, name))
    subprocess.run([run_program, path, folder], check=True)
    inputs = [tensors[name] for name in ("tokens", "types", "targets") if name in tensors]
    expected = model(Weights(tensors), *inputs)
    if not isinstance(expected, dict):
        expected = {"logits": expected}
    largest = 0.0
    for name, values in expected.items():
        found = np.fromfile(os.path.join(folder, name + ".out")).reshape(values.shape)
        assert np.std(values) > 1e-2, f"{family}: '{name}' is constant"
        largest = max(largest, np.max(np.abs(found - values)) / np.max(np.abs(values)))
    print(f"{family}: largest difference {largest:.1e}")
    return bool(largest <= 1e-4)


def main():
    shardc, run_program, folder, *families = sys.argv[1:]
    wrong = [f for f in families or FAMILIES if not compare(f, shardc, run_program, folder)]
    if wrong:
        sys.exit("error: these families differ: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
