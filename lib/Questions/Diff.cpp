//===- Diff.cpp - Two plans side by side ----------------------------------===//

#include "shardc/Questions/Diff.h"
#include "RecordedPlan.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <tuple>

using namespace shardc;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

DiffInput::DiffInput(const Report &report)
    : plan(std::make_unique<RecordedPlan>(recordOf(report))) {}
DiffInput::~DiffInput() = default;
DiffInput::DiffInput(DiffInput &&other) = default;

std::optional<DiffInput> DiffInput::fromJson(StringRef json, std::string file,
                                             std::string &error) {
  std::optional<RecordedPlan> record = readRecord(json, error);
  if (!record)
    return std::nullopt;
  record->file = std::move(file);
  DiffInput input;
  input.plan = std::make_unique<RecordedPlan>(std::move(*record));
  return input;
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// Tensors of one name and kind are told apart by their order.
using TensorKey = std::tuple<std::string, std::string, size_t>;

static std::vector<TensorKey> keysOf(const RecordedPlan &plan) {
  std::map<std::pair<std::string, std::string>, size_t> seen;
  std::vector<TensorKey> keys;
  for (const ReportTensor &tensor : plan.tensors)
    keys.push_back(
        {tensor.name, tensor.kind, seen[{tensor.name, tensor.kind}]++});
  return keys;
}

/// Where a tensor without a counterpart stands: behind which one that has one,
/// and what it is.
static std::string placeOf(const RecordedPlan &plan, size_t number,
                           const std::vector<bool> &matched) {
  const ReportTensor &tensor = plan.tensors[number];
  std::string place = tensor.kind;
  for (const ReportTensor::Dim &dim : tensor.dims)
    place += "," + std::to_string(dim.size);
  for (const RecordedOp &op : plan.ops)
    if (!op.isCollective && op.name == tensor.name)
      place += ";" + op.what;
  for (size_t i = number; i-- > 0;)
    if (matched[i])
      return place + ";" + plan.tensors[i].name;
  return place;
}

/// For each tensor of `b` the one of `a` that it is; nothing: none.
static std::vector<std::optional<size_t>> match(const RecordedPlan &a,
                                                const RecordedPlan &b) {
  std::vector<TensorKey> keysA = keysOf(a), keysB = keysOf(b);
  std::map<TensorKey, size_t> known;
  for (auto [i, key] : llvm::enumerate(keysA))
    known[key] = i;
  std::vector<std::optional<size_t>> result(keysB.size());
  std::vector<bool> matchedA(keysA.size()), matchedB(keysB.size());
  for (auto [i, key] : llvm::enumerate(keysB))
    if (auto it = known.find(key); it != known.end()) {
      result[i] = it->second;
      matchedB[i] = matchedA[it->second] = true;
    }
  std::multimap<std::string, size_t> places;
  for (size_t i = 0; i < keysA.size(); ++i)
    if (!matchedA[i])
      places.emplace(placeOf(a, i, matchedA), i);
  for (size_t i = 0; i < keysB.size(); ++i) {
    if (matchedB[i])
      continue;
    auto it = places.lower_bound(placeOf(b, i, matchedB));
    if (it == places.end() || it->first != placeOf(b, i, matchedB))
      continue;
    result[i] = it->second;
    places.erase(it);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------===//

static bool liesAlike(const ReportTensor &a, const ReportTensor &b) {
  auto axes = [](const ReportTensor &tensor) {
    std::vector<std::vector<std::string>> list;
    for (const ReportTensor::Dim &dim : tensor.dims)
      list.push_back(dim.axes);
    return list;
  };
  return axes(a) == axes(b) && a.partial == b.partial;
}

namespace {

class Differ {
public:
  Differ(const RecordedPlan &a, const RecordedPlan &b, Objective objective)
      : a(a), b(b), objective(objective), counterparts(match(a, b)) {}

  Diff run();

private:
  Picoseconds timeOf(const RecordedOp &op) const {
    return objective == Objective::Scheduled ? op.exposed : op.total;
  }
  DiffSide side(const RecordedPlan &plan) const;
  void addTensors();
  void addCosts(const RecordedPlan &plan, bool isB);
  DiffCost &costOf(const RecordedOp &op, StringRef name);
  void addRest();
  std::string nameInA(StringRef name) const;

  const RecordedPlan &a, &b;
  const Objective objective;
  const std::vector<std::optional<size_t>> counterparts;
  std::map<std::string, std::string> renamed;
  std::map<std::tuple<std::string, std::string, bool>, size_t> known;
  Diff result;
};

} // namespace

DiffSide Differ::side(const RecordedPlan &plan) const {
  return {plan.file,
          plan.hardware,
          plan.mesh,
          plan.status,
          plan.fits,
          objective == Objective::Scheduled ? plan.scheduled : plan.upper,
          plan.peak};
}

void Differ::addTensors() {
  auto sideOf = [](const ReportTensor &tensor) {
    return DiffTensor::Side{tensor.name, tensor.sharding, tensor.loc};
  };
  std::vector<bool> isInB(a.tensors.size());
  for (auto [i, tensor] : llvm::enumerate(b.tensors)) {
    if (!counterparts[i])
      continue;
    const ReportTensor &before = a.tensors[*counterparts[i]];
    isInB[*counterparts[i]] = true;
    if (before.name != tensor.name)
      renamed[tensor.name] = before.name;
    if (liesAlike(before, tensor))
      ++result.unmoved;
    else
      result.moved.push_back(
          {before.name, before.kind, sideOf(before), sideOf(tensor)});
  }
  for (auto [i, tensor] : llvm::enumerate(a.tensors))
    if (!isInB[i])
      result.moved.push_back({tensor.name, tensor.kind, sideOf(tensor), {}});
  for (auto [i, tensor] : llvm::enumerate(b.tensors))
    if (!counterparts[i])
      result.moved.push_back({tensor.name, tensor.kind, {}, sideOf(tensor)});
}

/// The name in `a` of a tensor of `b`, or of a statistic of it: `S.max`.
std::string Differ::nameInA(StringRef name) const {
  if (auto it = renamed.find(name.str()); it != renamed.end())
    return it->second;
  auto [tensor, rest] = name.rsplit('.');
  if (auto it = renamed.find(tensor.str());
      it != renamed.end() && !rest.empty())
    return it->second + "." + rest.str();
  return name.str();
}

DiffCost &Differ::costOf(const RecordedOp &op, StringRef name) {
  auto [it, isNew] = known.try_emplace({name.str(), op.what, op.isCollective},
                                       result.costs.size());
  if (isNew)
    result.costs.push_back(
        {name.str(), op.what, op.isCollective, 0, 0, "", ""});
  return result.costs[it->second];
}

void Differ::addCosts(const RecordedPlan &plan, bool isB) {
  for (const RecordedOp &op : plan.ops) {
    DiffCost &cost = costOf(op, isB ? nameInA(op.name) : op.name);
    (isB ? cost.b : cost.a) += timeOf(op);
    std::string &loc = isB ? cost.locB : cost.locA;
    if (loc.empty())
      loc = op.loc;
  }
}

/// Time of a report that was changed by hand beyond its operations.
void Differ::addRest() {
  DiffCost rest{"", "the rest", false, result.a.value, result.b.value, "", ""};
  for (const DiffCost &cost : result.costs) {
    rest.a -= cost.a;
    rest.b -= cost.b;
  }
  if (rest.a != 0 || rest.b != 0)
    result.costs.push_back(std::move(rest));
}

Diff Differ::run() {
  result.objective = objectiveName(objective);
  result.a = side(a);
  result.b = side(b);
  addTensors();
  addCosts(a, /*isB=*/false);
  addCosts(b, /*isB=*/true);
  addRest();
  // Equal ones stay in the order of the plans.
  std::vector<std::pair<Picoseconds, size_t>> order;
  for (auto [i, cost] : llvm::enumerate(result.costs))
    order.push_back({-std::abs(cost.difference()), i});
  llvm::sort(order);
  std::vector<DiffCost> sorted;
  for (auto [size, i] : order)
    sorted.push_back(std::move(result.costs[i]));
  result.costs = std::move(sorted);
  return std::move(result);
}

Diff shardc::diff(const DiffInput &a, const DiffInput &b, Objective objective) {
  return Differ(a.get(), b.get(), objective).run();
}
