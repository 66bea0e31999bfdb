//===- SmallPrograms.h - Programs of many shapes --------------*- C++ -*-===//
//
// Small hand-written programs that between them use everything that the planner
// treats apart.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_OPTIMIZER_SMALLPROGRAMS_H
#define SHARDC_TEST_UNIT_OPTIMIZER_SMALLPROGRAMS_H

#include "llvm/ADT/StringRef.h"

namespace shardc::test {

struct SmallProgram {
  const char *name;
  const char *text;
};

inline constexpr SmallProgram kSmallPrograms[] = {
    {"feed_forward", R"(
hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim B = 512, D = 256, F = 1024
input x: bf16[B, D]
weight W1: bf16[D, F]
weight W2: bf16[F, D]
H[B, F] = relu(x[B, D] * W1[D, F])
y[B, D] = H[B, F] * W2[F, D]
output y
)"},
    {"residual_repeat", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 64, D = 32, F = 128, L = 3
input x0: bf16[B, D]
x[B, D] = x0[B, D] + x0[B, D]
repeat L {
  weight g:  bf16[D]
  weight W1: bf16[D, F]
  weight W2: bf16[F, D]
  h[B, F]  = relu(rmsnorm[D](x, g) * W1[D, F])
  x[B, D] += h[B, F] * W2[F, D]
}
output x
)"},
    {"nested_repeat", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 64, D = 32, E = D, M = 3, L = 5
input x0: bf16[B, D]
weight shared: bf16[D, E]
x[B, D] = silu(x0[B, D])
s[B, D] = x0[B, D] * x0[B, D]
repeat M {
  weight g: bf16[D]
  n[B, D] = rmsnorm[D](x, g)
  repeat L {
    weight W: bf16[D, E]
    t[B, E] = x[B, D] * W[D, E]
    x[B, D] = t[B, D] + n[B, D] * s[B, D]
  }
  u[B, E] = x[B, D] * shared[D, E]
  x[B, D] = silu(u[B, D])
}
output x
output s
)"},
    {"carried_sum", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 64, D = 32, F = 128, L = 4
input x: bf16[B, D]
weight W0: bf16[D, F]
acc[B, F] = x[B, D] * W0[D, F]
repeat L {
  weight W: bf16[D, F]
  acc[B, F] += x[B, D] * W[D, F]
}
y[B, F] = relu(acc[B, F])
output y
output acc
)"},
    {"cache_scatter", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 16, S = 128, K = 4, G = 2, H = 64, D = 256, L = 2
input x0: bf16[B, D]
input pos: int32[B]
x[B, D] = x0[B, D] + x0[B, D]
repeat L {
  weight Wq: bf16[D, K, G, H]
  weight Wk: bf16[D, K, H]
  weight Wv: bf16[D, K, H]
  weight Wo: bf16[K, G, H, D]
  state kc: bf16[B, S, K, H]
  state vc: bf16[B, S, K, H]
  q[B, K, G, H] = rope[H](x[B, D] * Wq[D, K, G, H], at=pos[B])
  k[B, K, H] = x[B, D] * Wk[D, K, H]
  v[B, K, H] = x[B, D] * Wv[D, K, H]
  kc[B, pos[B], K, H] = k[B, K, H]
  vc[B, pos[B], K, H] = v[B, K, H]
  o[B, K, G, H] = attention[H, S](q, kc, vc, causal=true, at=pos[B])
  x[B, D] += o[B, K, G, H] * Wo[K, G, H, D]
}
output x
)"},
    {"written_state", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim F = 64, T = 32, E = 16
state s: f32[F, T]
state t: f32[F, T]
input at: int32[]
input u: f32[F]
weight W: f32[T, E]
s[F, at[]] = u[F]
y[F, E] = s[F, T] * W[T, E]
e[F, T] = exp(s[F, T])
t[F, at[]] = u[F]
t[F, T] = relu(t[F, T])
output y
output e
)"},
    {"running_mean", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 64, D = 32
input x: f32[B, D]
state m: f32[D]
m[D] = m[D] + mean[B](x[B, D])
y[B, D] = x[B, D] - m[D]
output y
)"},
    {"gathers", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim V = 1024, B = 16, T = 32, D = 64
input tokens: int32[B, T]
input last: int32[B]
weight Emb: bf16[V, D]
x[B, T, D] = Emb[tokens[B, T], D]
z[B, D] = x[B, last[B], D]
first[B, D] = x[B, 0, D]
y[B, V] = z[B, D] * Emb[V, D]
w[B, D] = first[B, D] * z[B, D]
output y
output w
)"},
    {"int8_weight", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 16, D = 256, F = 512
input x: bf16[B, D]
weight W: int8[D, F]
weight s: bf16[F]
weight V: int8[F, D]
h[B, F] = x[B, D] * (bf16(W[D, F]) * s[F])
y[B, D] = relu(h[B, F]) * bf16(V[F, D])
output y
)"},
    {"shared_prologue", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 16, C = 32, D = 256, F = 512
input x: bf16[B, D]
input u: bf16[C, D]
weight W: int8[D, F]
Wb[D, F] = bf16(W[D, F])
y[B, F] = x[B, D] * Wb[D, F]
z[C, F] = u[C, D] * Wb[D, F]
output y
output z
)"},
    {"activation_prologue", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 64, D = 256, F = 512, L = 3
input x0: bf16[B, D]
x[B, D] = x0[B, D] * 2.0
repeat L {
  weight W1: bf16[D, F]
  weight W2: bf16[D, F]
  weight V:  bf16[F, D]
  a[B, D] = gelu(x[B, D])
  g[B, F] = a[B, D] * W1[D, F]
  h[B, F] = a[B, D] * W2[D, F]
  x[B, D] = (silu(g[B, F]) * h[B, F]) * V[F, D]
}
output x
)"},
    {"statistics", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 64, D = 256, V = 512
input x: bf16[B, D]
input labels: int32[B]
weight g: bf16[D]
weight b: bf16[D]
weight W: bf16[D, V]
n[B, D] = rmsnorm[D](x, g)
l[B, D] = layernorm[D](x, g, b)
logits[B, V] = (n[B, D] + l[B, D]) * W[D, V]
p[B, V] = softmax[V](logits)
e[B] = cross_entropy[V](logits, labels)
z[B] = logsumexp[V](logits)
m[B] = max[V](logits)
a[B] = argmax[V](logits)
loss[] = mean[B](e)
output loss
output p
output z
output m
output a
)"},
    {"attention", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 2, T = 64, S = T, D = 128, K = 2, G = 2, H = 32
input x: bf16[B, T, D]
weight g:  bf16[D]
weight Wq: bf16[D, K, G, H]
weight Wk: bf16[D, K, H]
weight Wv: bf16[D, K, H]
weight Wo: bf16[K, G, H, D]
a = rmsnorm[D](x, g)
q[B, T, K, G, H] = rope[T, H](a[B, T, D] * Wq[D, K, G, H])
k[B, S, K, H] = rope[S, H](a[B, S, D] * Wk[D, K, H])
v[B, S, K, H] = a[B, S, D] * Wv[D, K, H]
o[B, T, K, G, H] = attention[H, S](q, k, v, causal=true)
y[B, T, D] = x[B, T, D] + o[B, T, K, G, H] * Wo[K, G, H, D]
output y
)"},
    {"several_users", R"(
hardware h100[2, 8]
mesh [X=2, Y=8]
dim B = 64, D = 256, F = 512, E = 128
input x: bf16[B, D]
weight W1: bf16[D, F]
weight W2: bf16[D, E]
weight W3: bf16[F, E]
weight W4: bf16[D, F]
h[B, F] = x[B, D] * W1[D, F]
e[B, E] = x[B, D] * W2[D, E]
f[B, F] = relu(h[B, F]) + x[B, D] * W4[D, F]
y[B, E] = h[B, F] * W3[F, E] + e[B, E]
z[B, E] = f[B, F] * W3[F, E]
output y
output z
output h
)"},
    {"partial_pins", R"(
hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim I = 256, J = 512, K = 128
input A: bf16[I@Y, J@X]
weight B: bf16[J@X, K]
P[I@Y, K]{+X} = A[I, J] * B[J, K]
Q[I@Y, K]{+X} = P[I, K] + P[I, K]
C[I@Y, K] = P[I, K]
R[I@Y, K@X] = Q[I, K]
output C
output R
)"},
    {"pins", R"(
hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim B = 256, D = 512, F = 1024
input x: bf16[B@X, D@?]
weight W1: bf16[D@?, F@Y]
weight W2: bf16[F@(X, Y), D]
H[B, F@?] = relu(x[B@X, D@()] * W1[D, F@Y])
G[B@(Y, X), F] = H[B, F]
y[B, D@?] = G[B, F] * W2[F@?, D]
z[B@(), D@()] = y[B, D]
output y[B@X, D@?]
output z
)"},
    {"pinned_repeat", R"(
hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim B = 256, D = 512, F = 1024, L = 4
input x0: bf16[B@X, D]
x[B, D@Y] = silu(x0[B, D])
repeat L {
  weight W1: bf16[D@X, F@Y]
  weight W2: bf16[F@Y, D@X]
  h[B@X, F@Y] = relu(x[B@X, D@()] * W1[D, F])
  x[B@X, D@Y] += h[B, F] * W2[F, D]
}
output x
)"},
    {"views", R"(
hardware tpu_v5e[4, 2]
mesh [X=4, Y=2]
dim B = 64, D = 32, P = 8, Q = 4, I = 8, T = 16, U = 80
input x: bf16[B, D]
input w: bf16[T, D]
weight W: bf16[P, Q, D]
a[B, P, Q] = split[D -> (P, Q)](x[B, D])
b[B, D] = merge[(P, Q) -> D](a[B, P, Q])
c[B, D] = a[B, P, Q] * W[P, Q, D]
s[I, D] = slice[B: 0..8 -> I](c[B, D])
t[U, D] = concat[(B, T) -> U](c[B, D], w[T, D])
i[T] = iota[T]
v[T, D] = w[T, D] * i[T]
y[B, D] = b[B, D] + c[B, D]
output y
output s
output t
output v
)"},
    {"three_axes", R"(
hardware tpu_v5p[2, 4, 4]
mesh [X=2, Y=4, Z=4]
dim B = 64, D = 64, F = 128
input x: bf16[B, D]
weight W1: bf16[D, F]
weight W2: bf16[F, D]
H[B, F] = gelu(x[B, D] * W1[D, F])
y[B, D] = H[B, F] * W2[F, D]
output y
)"},
    {"unit_axis", R"(
hardware tpu_v5e[4, 2]
mesh [X=1, Y=8]
dim B = 64, D = 32, F = 128
input x: bf16[B, D]
weight W: bf16[D, F]
y[B, F] = softmax[F](x[B, D] * W[D, F])
output y
)"},
    {"unused", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 64, D = 32
input x: bf16[B, D]
input idle: bf16[B, D]
weight spare: bf16[D]
t[B, D] = relu(x[B, D])
u[B, D] = silu(x[B, D])
output u
)"},
    {"input_out", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 64, D = 32, L = 2
input x: bf16[B, D]
y[B@X, D] = x[B, D]
z[B, D] = y[B, D]
repeat L {
  z[B, D] = y[B, D] + 1.0
}
output x
output y
output z
)"},
    {"swapped_carries", R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 64, D = 32, L = 2
input p: bf16[B, D]
input q: bf16[B, D]
a[B, D] = p[B, D] + 1.0
b[B, D] = q[B, D] + 2.0
repeat L {
  t[B, D] = a[B, D]
  a[B, D] = b[B, D]
  b[B, D] = t[B, D]
}
output a
output b
)"},
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_OPTIMIZER_SMALLPROGRAMS_H
