//===- Collectives.cpp - Collectives between devices' memories ------------===//
//
// Every collective sends as few bytes as it can: all_gather and all_to_all send
// each part where it is needed, reduce_scatter sends each device the summands
// of its part, all_reduce is a reduce_scatter of equal pieces and an all_gather
// of them.
//
//===----------------------------------------------------------------------===//

#include "shardc/Reference/Collectives.h"
#include "shardc/Reshard/Permutation.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace shardc;
using llvm::ArrayRef;
using llvm::SmallVector;

void Traffic::add(const Traffic &other) {
  for (size_t device = 0; device < bits.size(); ++device) {
    messages[device] += other.messages[device];
    bits[device] += other.bits[device];
  }
}

int64_t Traffic::totalBits() const {
  return std::accumulate(bits.begin(), bits.end(), int64_t(0));
}

int64_t Traffic::mostBits() const {
  return *std::max_element(bits.begin(), bits.end());
}

static bool contains(const FactorRange &range, int64_t element) {
  return element >= range.offset && element < range.offset + range.size;
}

namespace {

/// One run of a collective on all groups of its axes.
class Exchange {
public:
  Exchange(const Devices &devices, const Collective &collective,
           const std::vector<TensorRef> &parts, Traffic &traffic)
      : devices(devices), collective(collective), parts(parts),
        traffic(traffic) {
    if (collective.kind == CollectiveKind::CollectivePermute)
      permutation.emplace(devices.mesh(), collective.from, collective.to);
  }

  /// The result of every device, or nothing and the reason in `problem`.
  std::vector<TensorRef> run();

  std::optional<std::string> problem;

private:
  Box before(unsigned device) const {
    return partOf(devices, collective.shape, collective.from, device);
  }
  Box after(unsigned device) const {
    return partOf(devices, collective.shape, collective.to, device);
  }
  void send(unsigned from, unsigned to, int64_t elements);
  void fail(unsigned device, const std::string &what);
  bool membersAgree();
  TensorRef collect(unsigned device, ArrayRef<unsigned> sources);
  TensorRef slice(unsigned device) { return collect(device, {device}); }
  TensorRef permute(unsigned device);
  /// The rows before a stretch of a part's positions, by their number in its
  /// halo, that some device has, and where they are stored.
  void forEachHaloRow(
      const Box &part, int64_t stretch,
      llvm::function_ref<void(int64_t row, int64_t stored)> visit) const;
  Box withHalo(Box part) const;
  TensorRef haloReduce(unsigned device, ArrayRef<unsigned> line);
  TensorRef haloExchange(unsigned device, ArrayRef<unsigned> line);
  TensorRef reduceScatter(unsigned device, ArrayRef<unsigned> group);
  void allReduce(ArrayRef<unsigned> group, std::vector<TensorRef> &results);
  void combine(const Tensor &from, Tensor &to) const;

  const Devices &devices;
  const Collective &collective;
  const std::vector<TensorRef> &parts;
  Traffic &traffic;
  /// The routes of a collective_permute.
  std::optional<reshard::Permutation> permutation;
};

void Exchange::send(unsigned from, unsigned to, int64_t elements) {
  if (from == to || elements == 0)
    return;
  ++traffic.messages[from];
  traffic.bits[from] += elements * collective.elementBits;
}

/// The first problem is the one that is reported.
void Exchange::fail(unsigned device, const std::string &what) {
  if (!problem)
    problem = "device " + devices.name(device) + " " + what;
}

/// All devices bring arrays of one type and shape.
bool Exchange::membersAgree() {
  for (unsigned device = 1; device < devices.size(); ++device) {
    const Tensor &first = *parts.front(), &other = *parts[device];
    if (first.getElementType() == other.getElementType() &&
        first.getShape() == other.getShape())
      continue;
    problem = "devices " + devices.name(0) + " and " + devices.name(device) +
              " bring arrays of different types";
    return false;
  }
  return true;
}

/// The device's part, from the parts of `sources`, each element from one.
TensorRef Exchange::collect(unsigned device, ArrayRef<unsigned> sources) {
  Box wanted = after(device);
  Tensor result =
      emptyPart(parts.front()->getElementType(), wanted, collective.localShape);
  int64_t missing = numElements(wanted);
  auto elements = [](int64_t count) {
    return std::to_string(count) + (count == 1 ? " element" : " elements");
  };
  SmallVector<Box, 8> taken;
  for (unsigned source : sources) {
    Box held = before(source);
    std::optional<Box> common = intersect(wanted, held);
    if (!common)
      continue;
    for (const Box &other : taken)
      if (std::optional<Box> twice = intersect(*common, other))
        fail(device,
             "gets " + elements(numElements(*twice)) + " of its group twice");
    taken.push_back(*common);
    copyBox(*parts[source], held, result, wanted, *common);
    missing -= numElements(*common);
    send(source, device, numElements(*common));
  }
  if (missing > 0)
    fail(device,
         "needs " + elements(missing) + " that its group does not have");
  return std::make_shared<const Tensor>(std::move(result));
}

TensorRef Exchange::permute(unsigned device) {
  SmallVector<int64_t, 4> destination = devices.coordinates(device);
  SmallVector<int64_t, 4> source(destination.size());
  permutation->source(devices.mesh(), destination, source);
  return collect(device, {devices.at(source)});
}

void Exchange::forEachHaloRow(
    const Box &part, int64_t stretch,
    llvm::function_ref<void(int64_t row, int64_t stored)> visit) const {
  const FactorRange &own = part[collective.haloDim];
  const shd::PositionOrder &order = collective.haloOrder;
  SmallVector<int64_t> positions = order.haloPositions(
      own.offset, own.offset + own.size, collective.haloRows);
  int64_t first = stretch * collective.haloRows;
  for (int64_t row = first; row < first + collective.haloRows; ++row)
    if (positions[row] >= 0)
      visit(row, order.storedAt(positions[row]));
}

Box Exchange::withHalo(Box part) const {
  FactorRange &own = part[collective.haloDim];
  int64_t rows = collective.haloRows * collective.haloOrder.numStretches();
  own.offset -= rows;
  own.size += rows;
  return part;
}

/// First stretches follow each other along the line, second ones come in
/// reverse: the device whose stretch comes before, or behind.
static std::optional<unsigned> nextStretch(ArrayRef<unsigned> line,
                                           unsigned device, int64_t stretch,
                                           bool isBefore) {
  const unsigned *at = llvm::find(line, device);
  if ((stretch == 0) == isBefore)
    return at == line.begin() ? std::nullopt : std::optional(at[-1]);
  return at + 1 == line.end() ? std::nullopt : std::optional(at[1]);
}

/// The rows before each of the device's stretches of positions come from the
/// device with the stretch before; there are zeros where none is.
TensorRef Exchange::haloExchange(unsigned device, ArrayRef<unsigned> line) {
  Box own = before(device), wanted = withHalo(own);
  int64_t dim = collective.haloDim;
  Tensor result =
      emptyPart(parts.front()->getElementType(), wanted, collective.localShape);
  copyBox(*parts[device], own, result, wanted, own);
  for (int64_t i = 0; i < collective.haloOrder.numStretches(); ++i) {
    std::optional<unsigned> source =
        nextStretch(line, device, i, /*isBefore=*/true);
    if (!source)
      continue;
    Box held = before(*source);
    int64_t elements = 0;
    forEachHaloRow(own, i, [&](int64_t row, int64_t stored) {
      if (!contains(held[dim], stored))
        return;
      Box to = wanted, from = held;
      to[dim].offset += row;
      to[dim].size = 1;
      from[dim].offset += to[dim].offset - stored;
      copyBox(*parts[*source], from, result, wanted, to);
      elements += numElements(to);
    });
    send(*source, device, elements);
  }
  return std::make_shared<const Tensor>(std::move(result));
}

/// A device's own summands, and those that the devices with the stretches
/// behind have for rows of its part.
TensorRef Exchange::haloReduce(unsigned device, ArrayRef<unsigned> line) {
  Box own = after(device);
  int64_t dim = collective.haloDim;
  Tensor result =
      emptyPart(parts.front()->getElementType(), own, collective.localShape);
  copyBox(*parts[device], withHalo(own), result, own, own);
  for (int64_t i = 0; i < collective.haloOrder.numStretches(); ++i) {
    std::optional<unsigned> source =
        nextStretch(line, device, i, /*isBefore=*/false);
    if (!source)
      continue;
    Box part = after(*source), held = withHalo(part);
    int64_t elements = 0;
    forEachHaloRow(part, i, [&](int64_t row, int64_t stored) {
      if (!contains(own[dim], stored))
        return;
      Box to = own, from = held;
      to[dim].offset = stored;
      to[dim].size = 1;
      from[dim].offset = stored - row;
      addBox(*parts[*source], from, result, own, to);
      elements += numElements(to);
    });
    send(*source, device, elements);
  }
  return std::make_shared<const Tensor>(std::move(result));
}

void Exchange::combine(const Tensor &from, Tensor &to) const {
  auto apply = [&](auto a, auto b) {
    switch (collective.combination) {
    case shd::Combination::Sum:
      return a + b;
    case shd::Combination::Max:
      return std::max(a, b);
    case shd::Combination::Min:
      return std::min(a, b);
    }
    llvm_unreachable("unknown combiner");
  };
  for (int64_t i = 0; i < to.getNumElements(); ++i)
    if (to.isReal())
      to.getReals()[i] = apply(to.getReals()[i], from.getReals()[i]);
    else
      to.setInteger(i, apply(to.getInteger(i), from.getInteger(i)));
}

TensorRef Exchange::reduceScatter(unsigned device, ArrayRef<unsigned> group) {
  Box wanted = after(device);
  Tensor result =
      emptyPart(parts.front()->getElementType(), wanted, collective.localShape);
  for (unsigned source : group) {
    if (numElements(wanted) > 0 &&
        intersect(wanted, before(source)) != wanted) {
      fail(device, "needs summands that device " + devices.name(source) +
                       " does not have");
      break;
    }
    auto take = source == group.front() ? copyBox : addBox;
    take(*parts[source], before(source), result, wanted, wanted);
    send(source, device, numElements(wanted));
  }
  return std::make_shared<const Tensor>(std::move(result));
}

/// Member i of the group reduces piece i, and gives it to all.
void Exchange::allReduce(ArrayRef<unsigned> group,
                         std::vector<TensorRef> &results) {
  Tensor sum = *parts[group.front()];
  for (unsigned member : group.drop_front())
    combine(*parts[member], sum);
  int64_t elements = numElements(before(group.front()));
  int64_t pieces = int64_t(group.size());
  for (auto [i, owner] : llvm::enumerate(group)) {
    int64_t piece = elements / pieces + (int64_t(i) < elements % pieces);
    for (unsigned member : group) {
      send(member, owner, piece);
      send(owner, member, piece);
    }
  }
  auto result = std::make_shared<const Tensor>(std::move(sum));
  for (unsigned member : group)
    results[member] = result;
}

std::vector<TensorRef> Exchange::run() {
  std::vector<TensorRef> results(devices.size());
  if (!membersAgree())
    return results;
  for (unsigned device = 0; device < devices.size(); ++device) {
    SmallVector<unsigned, 8> group = devices.group(device, collective.axes);
    switch (collective.kind) {
    case CollectiveKind::AllGather:
    case CollectiveKind::AllToAll:
      results[device] = collect(device, group);
      break;
    case CollectiveKind::AllSlice:
      results[device] = slice(device);
      break;
    case CollectiveKind::ReduceScatter:
      results[device] = reduceScatter(device, group);
      break;
    case CollectiveKind::AllReduce:
      if (group.front() == device)
        allReduce(group, results);
      break;
    case CollectiveKind::CollectivePermute:
      results[device] = permute(device);
      break;
    case CollectiveKind::HaloExchange:
      results[device] = haloExchange(device, group);
      break;
    case CollectiveKind::HaloReduce:
      results[device] = haloReduce(device, group);
      break;
    case CollectiveKind::ToHost:
    case CollectiveKind::FromHost:
      results[device] = parts[device];
      break;
    }
  }
  return results;
}

} // namespace

std::optional<std::string> shardc::runCollective(const Devices &devices,
                                                 const Collective &collective,
                                                 std::vector<TensorRef> &parts,
                                                 Traffic &traffic) {
  Exchange exchange(devices, collective, parts, traffic);
  std::vector<TensorRef> results = exchange.run();
  if (!exchange.problem)
    parts = std::move(results);
  return exchange.problem;
}
