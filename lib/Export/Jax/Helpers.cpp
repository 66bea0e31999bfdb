//===- Helpers.cpp - Functions that an exported file may define -----------===//
//
// Python text. A file gets those that it calls, and those that these call.
//
//===----------------------------------------------------------------------===//

#include "PythonFile.h"

using namespace shardc;
using namespace shardc::jax;
using llvm::StringRef;

namespace {
struct Helper {
  StringRef name;
  StringRef text;
};
} // namespace

/// Each after those that it calls.
static const Helper kHelpers[] = {
    {"axis_sizes", R"(
def axis_sizes():
    """The axes of the mesh of the program that runs, and their sizes."""
    return dict(jax.sharding.get_abstract_mesh().shape)
)"},
    {"has_host", R"(
def has_host():
    """True if the devices reach memory of the host as one of another kind."""
    return "pinned_host" in {memory.kind for memory in jax.devices()[0].addressable_memories()}
)"},
    {"to_host", R"(
def to_host(x):
    """Copies to the memory of the host; without one, x stays in the device's."""
    return jax.device_put(x, jax.memory.Space.Host) if has_host() else x
)"},
    {"from_host", R"(
def from_host(x):
    """Copies from the memory of the host."""
    return jax.device_put(x, jax.memory.Space.Device) if has_host() else x
)"},
    {"read_part", R"(
def read_part(stack, *numbers):
    """stack[numbers] as a slice, which XLA takes from the memory of the host."""
    shape = stack.shape[len(numbers):]
    at = numbers + (jnp.int32(0),) * len(shape)
    return lax.dynamic_slice(stack, at, (1,) * len(numbers) + shape).reshape(shape)
)"},
    {"write_part", R"(
def write_part(stack, part, *numbers):
    """The stack with another part, as a slice that XLA copies to the memory of the host."""
    units = stack.ndim - len(numbers) - part.ndim
    at = numbers + (jnp.int32(0),) * (part.ndim + units)
    part = part.reshape((1,) * len(numbers) + part.shape + (1,) * units)
    return lax.dynamic_update_slice(stack, part, at)
)"},
    {"part", R"(
def part(index, *axes):
    """How many elements of an index each device has."""
    return size[index] // math.prod(lax.axis_size(axis) for axis in axes)
)"},
    {"start", R"(
def start(index, *axes):
    """The first element of an index that this device has."""
    return lax.axis_index(axes) * part(index, *axes)
)"},
    {"positions", R"(
def positions(index, *axes):
    """The elements of an index that this device has."""
    return start(index, *axes) + jnp.arange(part(index, *axes))
)"},
    {"zigzag", R"(
def zigzag(index, parts):
    """The elements of an index, dealt: part d has chunks d and 2 * parts - 1 - d."""
    chunks = np.arange(size[index]).reshape(2 * parts, -1)
    return jnp.asarray(np.stack([chunks[:parts], chunks[: parts - 1 : -1]], 1).reshape(-1))
)"},
    {"ring_positions", R"(
def ring_positions(step, index, *axes):
    """The elements of an index that come by in a step of a ring."""
    place = (lax.axis_index(axes) + step) % lax.axis_size(axes)
    return place * part(index, *axes) + jnp.arange(part(index, *axes))
)"},
    {"halo_positions", R"(
def halo_positions(halo, index, *axes):
    """The elements of an index that this device has, behind those of the halo."""
    return start(index, *axes) - halo + jnp.arange(halo + part(index, *axes))
)"},
    {"dealt_halo_positions", R"(
def dealt_halo_positions(halo, order, index, *axes):
    """The same in zigzag order: a halo before each of two stretches, but the last device has one."""
    here, length = lax.axis_index(axes), part(index, *axes) // 2
    second = jnp.where(here + 1 < lax.axis_size(axes), size[index] - (here + 1) * length, 0)
    before = jnp.arange(-halo, 0)
    return jnp.concatenate([here * length + before, second + before, order[positions(index, *axes)]])
)"},
    {"einsum", R"(
def einsum(subscripts, *operands):
    """Sums accumulate in f32."""
    return jnp.einsum(subscripts, *operands, preferred_element_type=f32)
)"},
    {"rmsnorm", R"(
def rmsnorm(x, axis, eps):
    """x over its root mean square."""
    return x * lax.rsqrt(jnp.mean(jnp.square(x), axis=axis, keepdims=True) + eps)
)"},
    {"layernorm", R"(
def layernorm(x, axis, eps):
    """The distance from the mean over the standard deviation."""
    mean, variance = jnp.mean(x, axis, keepdims=True), jnp.var(x, axis, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + eps)
)"},
    {"saturate", R"(
def saturate(x, dtype):
    """Converts to nearest even; what dtype cannot hold becomes its limit."""
    if jnp.issubdtype(dtype, jnp.integer):
        limits = jnp.iinfo(dtype)
        x = jnp.nan_to_num(jnp.round(x), nan=0, posinf=jnp.inf, neginf=-jnp.inf)
        return jnp.clip(x, int(limits.min), int(limits.max)).astype(dtype)
    limits = jnp.finfo(dtype)
    if float(limits.min) > 0:  # XLA takes numbers below 2^-126 as 0, which scales lack
        x = x.astype(jnp.float32)
        scale = jnp.clip(x, 2.0**-126, 2.0**127).astype(dtype)
        return jnp.where(x < 2.0**-126, limits.min, scale)
    return jnp.clip(x, float(limits.min), float(limits.max)).astype(dtype)
)"},
    {"take", R"(
def take(table, positions, axis, begin):
    """The slices of a table that positions name, 0 where another device has them."""
    at = positions - begin
    inside = (0 <= at) & (at < table.shape[axis])
    slices = jnp.take(table, jnp.where(inside, at, 0), axis=axis)
    inside = jnp.expand_dims(inside, tuple(range(axis)))
    inside = inside.reshape(inside.shape + (1,) * (slices.ndim - inside.ndim))
    return jnp.where(inside, slices, jnp.zeros_like(slices))
)"},
    {"lookup", R"(
def lookup(table, *positions):
    """The elements at positions, 0 where another device has them."""
    inside = [(0 <= at) & (at < n) for at, n in zip(positions, table.shape)]
    at = tuple(jnp.where(ok, at, 0) for ok, at in zip(inside, positions))
    found = table[at]
    return jnp.where(functools.reduce(jnp.logical_and, inside), found, jnp.zeros_like(found))
)"},
    {"here", R"(
def here(at, count):
    """Positions on this device; others become `count`, which scatters drop."""
    return jnp.where((0 <= at) & (at < count), at, count)
)"},
    {"put_last", R"(
def put_last(destination, at, update, order):
    """Writes an update at positions; of equal ones the last in `order` wins."""
    shape = jnp.broadcast_shapes(update.shape, *(index.shape for index in at))
    order = jnp.broadcast_to(order, shape)
    last = jnp.full(destination.shape, -1, order.dtype).at[at].max(order, mode="drop")
    found = tuple(jnp.broadcast_to(index, shape) for index in at)
    winner = order == last.at[found].get(mode="fill", fill_value=-2)
    kept = tuple(jnp.where(winner, index, n) for index, n in zip(found, destination.shape))
    return destination.at[kept].set(jnp.broadcast_to(update, shape), mode="drop")
)"},
    {"pick", R"(
def pick(x, labels, axis, begin=0):
    """The element of an axis that each label names, 0 where another device has it."""
    at = labels - begin
    inside = (0 <= at) & (at < x.shape[axis])
    at = jnp.expand_dims(jnp.where(inside, at, 0), axis)
    return jnp.where(inside, jnp.take_along_axis(x, at, axis).squeeze(axis), 0)
)"},
    {"rope", R"(
def rope(x, positions, axis, theta):
    """Turns element i of an axis with i + size / 2 by position * theta ** (-2 i / size)."""
    x = jnp.moveaxis(x.astype(f32), axis, -1)
    half = x.shape[-1] // 2
    angle = positions[..., None].astype(f32) * theta ** (-jnp.arange(half, dtype=f32) / half)
    a, b = x[..., :half], x[..., half:]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.moveaxis(jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1), -1, axis)
)"},
    {"top_k", R"(
def top_k(x, k, axis):
    """True at the k largest along an axis, of equal ones the lower."""
    x = jnp.moveaxis(x, axis, -1)
    at = lax.top_k(x, k)[1]
    found = jnp.any(at[..., None] == jnp.arange(x.shape[-1]), axis=-2)
    return jnp.moveaxis(found, -1, axis)
)"},
    {"slots_of", R"(
def slots_of(picks, tokens, slots, *parts):
    """True where a token has a slot: picks, with `slots` behind, and parts of axes (begin, size)."""
    last = jnp.moveaxis(picks, tokens, range(-len(tokens), 0))
    flat = last.reshape(last.shape[:last.ndim - len(tokens)] + (-1,))
    number = (jnp.cumsum(flat, axis=-1, dtype=jnp.int32) - 1).reshape(last.shape)
    number = jnp.moveaxis(number, range(-len(tokens), 0), tokens)
    found = picks[..., None] & (number[..., None] == slots)
    for axis, begin, size in parts:
        found = lax.dynamic_slice_in_dim(found, begin, size, axis)
    return found
)"},
    {"split_axes", R"(
def split_axes(x, axes, dims):
    """Cuts each dimension by its axes, the major first; one dimension in front counts the parts."""
    shape, place, rest = [], {}, []
    for dim, extent in enumerate(x.shape):
        for axis in dims.get(dim, ()):
            place[axis] = len(shape)
            shape.append(lax.axis_size(axis))
            extent //= lax.axis_size(axis)
        rest.append(len(shape))
        shape.append(extent)
    x = x.reshape(shape).transpose([place[axis] for axis in axes] + rest)
    return x.reshape((-1,) + x.shape[len(axes):])
)"},
    {"join_axes", R"(
def join_axes(x, axes, dims):
    """Undoes split_axes."""
    x = x.reshape([lax.axis_size(axis) for axis in axes] + list(x.shape[1:]))
    order, shape = [], []
    for dim, extent in enumerate(x.shape[len(axes):]):
        group = dims.get(dim, ())
        order += [axes.index(axis) for axis in group] + [len(axes) + dim]
        shape.append(math.prod(lax.axis_size(axis) for axis in group) * extent)
    return x.transpose(order).reshape(shape)
)"},
    {"all_gather", R"(
def all_gather(x, dims):
    """Joins several dimensions, each over its axes, in one collective."""
    axes = sum(dims.values(), ())
    return join_axes(lax.all_gather(x, axes, axis=0), axes, dims)
)"},
    {"psum_scatter", R"(
def psum_scatter(x, dims):
    """Adds up, and splits several dimensions, each over its axes, in one collective."""
    axes = sum(dims.values(), ())
    return lax.psum_scatter(split_axes(x, axes, dims), axes, scatter_dimension=0)
)"},
    {"all_to_all", R"(
def all_to_all(x, joined, split):
    """Joins some dimensions and splits others, each over its axes, in one collective."""
    axes = tuple(axis for axis in axis_sizes() if axis in sum(joined.values(), ()))
    x = lax.all_to_all(split_axes(x, axes, split), axes, split_axis=0, concat_axis=0, tiled=True)
    return join_axes(x, axes, joined)
)"},
    {"all_slice", R"(
def all_slice(x, axes, dim):
    """This device's part of a dimension; no data moves."""
    extent = x.shape[dim] // lax.axis_size(axes)
    return lax.dynamic_slice_in_dim(x, lax.axis_index(axes) * extent, extent, dim)
)"},
    {"ring_shift", R"(
def ring_shift(x, axes, back=False):
    """Every device sends to the one before it on the ring of the axes; back: behind it."""
    n, step = lax.axis_size(axes), 1 if back else -1
    return lax.ppermute(x, axes, [(place, (place + step) % n) for place in range(n)])
)"},
    {"line", R"(
def line(axes):
    """The axes in the mesh's order, and how that numbers the devices along them."""
    axes = (axes,) if isinstance(axes, str) else axes
    known = tuple(axis for axis in axis_sizes() if axis in axes)
    sizes = [lax.axis_size(axis) for axis in known]
    numbers = np.arange(math.prod(sizes)).reshape(sizes)
    return known, numbers.transpose([known.index(axis) for axis in axes]).reshape(-1).tolist()
)"},
    {"halo_exchange", R"(
def halo_exchange(x, axes, dim, rows):
    """The last rows of the part before, and this device's own; zeros before the first."""
    extent, (axes, places) = x.shape[dim], line(axes)
    last = lax.slice_in_dim(x, extent - rows, extent, axis=dim)
    before = lax.ppermute(last, axes, list(zip(places, places[1:])))
    return jnp.concatenate([before, x], axis=dim)
)"},
    {"halo_reduce", R"(
def halo_reduce(x, axes, dim, rows):
    """Undoes halo_exchange: the part before gets its rows back, and adds them."""
    extent, (axes, places) = x.shape[dim], line(axes)
    first = lax.slice_in_dim(x, 0, rows, axis=dim)
    back = lax.ppermute(first, axes, list(zip(places[1:], places)))
    own = lax.slice_in_dim(x, rows, extent, axis=dim)
    ahead = [(0, 0, 0)] * x.ndim
    ahead[dim] = (extent - 2 * rows, 0, 0)
    return own + lax.pad(back, jnp.zeros((), x.dtype), ahead)
)"},
    {"stretches", R"(
def stretches(x, dim, parts):
    """The two stretches of positions of a part in zigzag order, `parts` chunks each."""
    shape = x.shape[:dim] + (parts, 2, x.shape[dim] // (2 * parts)) + x.shape[dim + 1 :]
    first, second = jnp.moveaxis(x.reshape(shape), dim + 1, 0)
    length = x.shape[:dim] + (x.shape[dim] // 2,) + x.shape[dim + 1 :]
    return first.reshape(length), jnp.flip(second, dim).reshape(length)
)"},
    {"dealt", R"(
def dealt(first, second, dim, parts):
    """Undoes stretches."""
    shape = first.shape[:dim] + (parts, first.shape[dim] // parts) + first.shape[dim + 1 :]
    both = jnp.stack([first.reshape(shape), jnp.flip(second.reshape(shape), dim)], dim + 1)
    return both.reshape(first.shape[:dim] + (2 * first.shape[dim],) + first.shape[dim + 1 :])
)"},
    {"dealt_halo_exchange", R"(
def dealt_halo_exchange(x, axes, dim, rows, parts):
    """The rows before each of a part's two stretches in zigzag order, and its own."""
    axes, places = line(axes)
    both = stretches(x, dim, parts // len(places))
    length = both[0].shape[dim]
    first, second = (lax.slice_in_dim(rest, length - rows, length, axis=dim) for rest in both)
    before = lax.ppermute(first, axes, list(zip(places, places[1:])))
    behind = lax.ppermute(second, axes, list(zip(places[1:], places)))
    return jnp.concatenate([before, behind, x], axis=dim)
)"},
    {"dealt_halo_reduce", R"(
def dealt_halo_reduce(x, axes, dim, rows, parts):
    """Undoes dealt_halo_exchange: rows go back to the parts that have them, and are added."""
    axes, places = line(axes)
    first, second, own = jnp.split(x, [rows, 2 * rows], axis=dim)
    first = lax.ppermute(first, axes, list(zip(places[1:], places)))
    second = lax.ppermute(second, axes, list(zip(places, places[1:])))
    ahead = [(0, 0, 0)] * x.ndim
    ahead[dim] = (own.shape[dim] // 2 - rows, 0, 0)
    back = (lax.pad(rest, jnp.zeros((), x.dtype), ahead) for rest in (first, second))
    return own + dealt(*back, dim, parts // len(places))
)"},
    {"norm_scale", R"(
def norm_scale(gradients, clip):
    """By what gradients are multiplied so that the norm of all is at most `clip`."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(gradient)) for gradient in gradients))
    return clip / jnp.maximum(norm, clip)
)"},
    {"adamw", R"(
def adamw(gradient, weight, m, v, step, lr, beta1, beta2, eps, decay):
    """Weight and moments after a step of AdamW (Loshchilov and Hutter, 2019)."""
    weight, m, v = weight.astype(f32), m.astype(f32), v.astype(f32)
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * jnp.square(gradient)
    mean, deviation = m / (1 - beta1**step), jnp.sqrt(v / (1 - beta2**step))
    return weight - lr * (mean / (deviation + eps) + decay * weight), m, v
)"},
    {"sgd", R"(
def sgd(gradient, weight, momentum=None, *, lr, beta, decay):
    """The weight, and its momentum if there is one, after a step of SGD."""
    weight = weight.astype(f32)
    gradient = gradient + decay * weight
    if momentum is not None:
        gradient = beta * momentum.astype(f32) + gradient
    return weight - lr * gradient, gradient
)"},
    {"part_of_segments", R"(
def part_of_segments(iteration, segments, length):
    """The part of what an iteration begins with: those of all segments, then the others of one."""
    place = iteration % length
    return jnp.where(place == 0, iteration // length, segments - 1 + place)
)"},
    {"chunk", R"(
def chunk(x, number, dim, count):
    """One of `count` equal parts of a dimension."""
    extent = x.shape[dim] // count
    return lax.dynamic_slice_in_dim(x, number * extent, extent, dim)
)"},
    {"turn", R"(
def turn(tick, place, count):
    """The item that the stage at a place of the line runs, and if it has one."""
    number = tick - place
    return jnp.clip(number, 0, count - 1), (0 <= number) & (number < count)
)"},
    {"chunk_of", R"(
def chunk_of(item, axis, chunks):
    """Microbatch and chunk of an item: as many microbatches as stages, then their next chunk."""
    n = lax.axis_size(axis)
    return item // (n * chunks) * n + item % n, item // n % chunks
)"},
    {"item_of", R"(
def item_of(microbatch, chunk, axis, chunks):
    """Undoes chunk_of."""
    n = lax.axis_size(axis)
    return (microbatch // n * chunks + chunk) * n + microbatch % n
)"},
    {"to_stage", R"(
def to_stage(x, axis, step):
    """Sends to the next stage, or with -1 to the one before."""
    n = lax.axis_size(axis)
    pairs = [(stage, stage + step) for stage in range(n) if 0 <= stage + step < n]
    return lax.ppermute(x, axis, pairs)
)"},
    {"around", R"(
def around(x, axis, step):
    """The same on a ring: from the last stage to the first one's next chunk."""
    n = lax.axis_size(axis)
    return lax.ppermute(x, axis, [(stage, (stage + step) % n) for stage in range(n)])
)"},
    {"layer_slots", R"(
def layer_slots():
    """The layers as stages store them, chunk by chunk; -1 where a chunk has fewer than others."""
    held = np.array(HELD)
    begin = (np.cumsum(held.T) - held.T.reshape(-1)).reshape(held.T.shape).T
    slot = np.arange(held.max())
    layers = np.where(slot < held[..., None], begin[..., None] + slot, -1)
    return jnp.asarray(layers.reshape(-1))
)"},
    {"of_stage", R"(
def of_stage(x, mine, axis):
    """The value of the stage that it belongs to, on all stages."""
    return lax.psum(jnp.where(mine, x, jnp.zeros_like(x)), axis).astype(x.dtype)
)"},
    {"permute", R"(
def permute(x, axes, *exchanges):
    """A device takes the part that its coordinates `new` count from where `old` count it."""
    pairs, count = [], {axis: lax.axis_size(axis) for axis in axes}
    for to, coordinates in enumerate(itertools.product(*(range(count[a]) for a in axes))):
        place = dict(zip(axes, coordinates))
        origin = dict(place)
        for old, new in exchanges:
            part = 0
            for axis in new:
                part = part * count[axis] + place[axis]
            for axis in reversed(old):
                part, origin[axis] = divmod(part, count[axis])
        source = 0
        for axis in axes:
            source = source * count[axis] + origin[axis]
        pairs.append((source, to))
    return lax.ppermute(x, axes, pairs)
)"},
};

static bool calls(StringRef text, StringRef name) {
  return text.contains(cat(" ", name, "(")) ||
         text.contains(cat("(", name, "("));
}

std::string jax::helperDefinitions(const std::set<std::string> &helpers) {
  std::set<std::string> needed = helpers;
  std::string text;
  for (const Helper &helper : llvm::reverse(kHelpers)) {
    if (!needed.count(helper.name.str()))
      continue;
    for (const Helper &other : kHelpers)
      if (other.name != helper.name && calls(helper.text, other.name))
        needed.insert(other.name.str());
    text = cat(helper.text, "\n", text);
  }
  return text;
}

void jax::reserveHelperNames(PythonNames &names) {
  for (const Helper &helper : kHelpers)
    names.reserve(helper.name);
}
