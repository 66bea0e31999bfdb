//===- PlanState.cpp - What a crossover compares --------------------------===//

#include "shardc/Questions/Crossover.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>
#include <tuple>

using namespace shardc;

static auto identity(const PlanState::Op &op) {
  return std::tie(op.name, op.kind, op.loc, op.operand);
}

bool PlanState::operator==(const PlanState &other) const {
  auto sameOp = [](const Op &a, const Op &b) {
    return identity(a) == identity(b) && a.bound == b.bound;
  };
  return legal == other.legal && bound == other.bound && fits == other.fits &&
         parallelism == other.parallelism &&
         llvm::equal(ops, other.ops, sameOp) && tensors == other.tensors &&
         steps == other.steps;
}

bool shardc::alternates(llvm::ArrayRef<const PlanState *> states) {
  // A state that comes and goes once may lie between two thresholds.
  constexpr int kFew = 1;
  int returns = 0;
  std::vector<const PlanState *> distinct;
  const PlanState *before = nullptr;
  for (const PlanState *state : states) {
    auto isSame = [&](const PlanState *known) { return *known == *state; };
    bool isOther = !before || !isSame(before);
    if (isOther && llvm::any_of(distinct, isSame)) {
      if (++returns > kFew)
        return true;
    } else if (isOther) {
      distinct.push_back(state);
    }
    before = state;
  }
  return false;
}

static std::string stepOf(const ReportItem &item) {
  if (const ReportCollective *moved = item.collective())
    return item.kind + " " + moved->operand + moved->from + " -> " + moved->to;
  return item.kind + " " + item.name + item.compute()->sharding;
}

/// The part that each axis has in most of the work, if any.
static std::string parallelismOf(const Report &report) {
  std::vector<std::string> axes;
  for (const Report::Axis &axis : report.mesh)
    if (llvm::StringRef role = axis.role; role != "none") {
      role.consume_front("mostly ");
      axes.push_back(axis.name + " " + role.str());
    }
  return llvm::join(axes, ", ");
}

PlanState shardc::stateOf(const Outcome &outcome) {
  PlanState state;
  if (!outcome.report)
    return state;
  const Report &report = *outcome.report;
  state.legal = true;
  state.bound = report.time.bound;
  state.fits = report.memory.fits && report.plan.status != "infeasible";
  state.parallelism = parallelismOf(report);
  for (const ReportItem &item : report.items) {
    const ReportCollective *moved = item.collective();
    state.ops.push_back({item.name, item.kind, item.loc,
                         moved ? moved->operand : "", item.bound().str()});
    state.steps.push_back(stepOf(item));
  }
  for (const ReportTensor &tensor : report.tensors)
    state.tensors.push_back(tensor.name + tensor.sharding);
  return state;
}

/// Entries that only one of the two lists has, each as often as it occurs more
/// there.
static std::string only(llvm::ArrayRef<std::string> list,
                        llvm::ArrayRef<std::string> other) {
  std::multiset<std::string> rest(other.begin(), other.end());
  std::vector<std::string> result;
  for (const std::string &each : list)
    if (auto it = rest.find(each); it != rest.end())
      rest.erase(it);
    else
      result.push_back(each);
  return llvm::join(result, ", ");
}

/// Operations of one identity are told apart by their order.
static void addOpChanges(const PlanState &from, const PlanState &to,
                         const Change &change, std::vector<Change> &changes) {
  using Identity =
      std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Identity, std::vector<const PlanState::Op *>> before;
  std::map<Identity, size_t> seen;
  for (const PlanState::Op &op : from.ops)
    before[identity(op)].push_back(&op);
  for (const PlanState::Op &op : to.ops) {
    size_t number = seen[identity(op)]++;
    const auto &same = before[identity(op)];
    if (number >= same.size() || same[number]->bound == op.bound)
      continue;
    Change made = change;
    made.what = "op.bound";
    made.op = op;
    made.from = same[number]->bound;
    made.to = op.bound;
    changes.push_back(std::move(made));
  }
}

std::vector<Change> shardc::changesBetween(int64_t before,
                                           const PlanState &from, int64_t at,
                                           const PlanState &to) {
  std::vector<Change> changes;
  auto add = [&](llvm::StringRef what, std::string old, std::string now) {
    if (old != now)
      changes.push_back(
          {at, before, what.str(), {}, std::move(old), std::move(now)});
  };
  auto truth = [](bool value) { return value ? "true" : "false"; };
  add("time.bound", from.bound, to.bound);
  add("memory.fits", truth(from.fits), truth(to.fits));
  add("parallelism", from.parallelism, to.parallelism);
  if (from.tensors != to.tensors)
    add("plan", only(from.tensors, to.tensors), only(to.tensors, from.tensors));
  else
    add("plan", only(from.steps, to.steps), only(to.steps, from.steps));
  addOpChanges(from, to, {at, before, "", {}, "", ""}, changes);
  return changes;
}
