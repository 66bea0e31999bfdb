//===- Items.cpp - Operations and collectives of a planned program --------===//

#include "Collect.h"
#include "Names.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Optimizer/GroupCosts.h"
#include "shardc/Schedule/Prices.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

class ItemCollector {
public:
  ItemCollector(const CollectiveModel &model, Report &report)
      : model(model), report(report) {}

  ItemIndex collect(ProgramOp program);

private:
  void visit(Block &block, int repeat);
  void addPart(Operation *first, GroupCostAttr price, int repeat);
  void addCollective(Operation *op, int repeat);
  void findPhases();
  void add(ReportItem item, Operation *op, int repeat);
  std::string networkText(const CollectiveCost &cost) const;

  const CollectiveModel &model;
  Report &report;
  /// Operations that are costed together, in program order.
  llvm::MapVector<Attribute, SmallVector<Operation *, 4>> parts;
  ProgramOrder order;
  ItemIndex index;
};

void ItemCollector::add(ReportItem item, Operation *op, int repeat) {
  item.loc = locationText(op->getLoc());
  item.phase = getPhase(op);
  item.count = executionCount(op);
  item.repeat = repeat;
  item.total = saturatingMultiply(toPicoseconds(item.seconds), item.count);
  report.items.push_back(std::move(item));
}

void ItemCollector::addPart(Operation *first, GroupCostAttr price, int repeat) {
  ArrayRef<Operation *> part = first;
  if (Attribute group = first->getAttr(kGroup))
    part = parts[group];
  Operation *leader = leaderOf(part);

  ReportCompute compute;
  compute.function = functionName(leader).str();
  for (Operation *op : part)
    if (op != leader)
      compute.fused.push_back(functionName(op).str());
  for (Operation *op : part)
    if (auto groups = op->getAttrOfType<ArrayAttr>(kPrologues))
      for (Attribute group : groups)
        for (Operation *before : parts.lookup(group))
          compute.prologue.push_back(functionName(before).str());
  compute.cost = groupPrice(price);
  for (Operation *op : part)
    compute.meanMatrixFlops += deviceFlops(model.mesh(), op).mean;
  compute.sharding = llvm::join(
      llvm::map_range(leader->getResults(),
                      [&](Value result) {
                        return notation(
                            model.mesh(),
                            explicitLayout(model.mesh(), result.getType()),
                            indexNames(result));
                      }),
      ", ");

  ReportItem item;
  item.name = nameOf(leader);
  item.kind = mnemonic(leader).str();
  item.seconds = compute.cost.seconds();
  item.detail = std::move(compute);
  add(std::move(item), leader, repeat);
}

std::string ItemCollector::networkText(const CollectiveCost &cost) const {
  std::string text;
  for (unsigned i = 0; i < model.numNetworks(); ++i)
    if (cost.boundBy() & physicalBit(i))
      text += (text.empty() ? "" : ",") + model.networkName(i).str();
  return text;
}

void ItemCollector::addCollective(Operation *op, int repeat) {
  const Mesh &mesh = model.mesh();
  Value input = collectiveInput(op);
  auto operand = op->getAttrOfType<StringAttr>(kOperand);
  std::vector<std::string> indices = collectiveIndices(op);

  ReportCollective collective;
  collective.kind = collectiveKind(op);
  collective.axes = collectiveAxes(op);
  llvm::sort(collective.axes, [&](const auto &a, const auto &b) {
    return mesh.find(a) < mesh.find(b);
  });
  collective.operand = operand ? operand.str() : valueName(input);
  collective.cost = collectivePrice(op, model);
  collective.network = networkText(collective.cost);
  collective.from =
      notation(mesh, explicitLayout(mesh, input.getType()), indices);
  collective.to =
      notation(mesh, explicitLayout(mesh, onlyResult(op).getType()), indices);
  collective.reason = collectiveReason(op, mesh, order);

  ReportItem item;
  item.name = item.kind = mnemonic(op).str();
  item.seconds = collective.cost.seconds();
  item.detail = std::move(collective);
  add(std::move(item), op, repeat);
}

void ItemCollector::visit(Block &block, int repeat) {
  for (Operation &op : block) {
    if (auto inner = dyn_cast<RepeatOp>(op)) {
      report.repeats.push_back(
          {inner.getIndex().str(), int64_t(inner.getCount()), repeat});
      visit(inner.getBody().front(), int(report.repeats.size()) - 1);
    } else if (auto price = op.getAttrOfType<GroupCostAttr>(kGroupCost)) {
      index[&op] = report.items.size();
      addPart(&op, price, repeat);
    } else if (isCollective(&op)) {
      index[&op] = report.items.size();
      addCollective(&op, repeat);
    }
  }
}

/// A collective belongs to the phase of the operation that follows it in its
/// repeat, or of the last one there.
void ItemCollector::findPhases() {
  llvm::DenseMap<int, Phase> near;
  for (ReportItem &item : report.items)
    if (item.compute())
      near[item.repeat] = item.phase;
  for (ReportItem &item : llvm::reverse(report.items)) {
    if (item.compute())
      near[item.repeat] = item.phase;
    else if (auto it = near.find(item.repeat); it != near.end())
      item.phase = it->second;
  }
}

ItemIndex ItemCollector::collect(ProgramOp program) {
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    order[op] = order.size();
    if (Attribute group = op->getAttr(kGroup))
      parts[group].push_back(op);
  });
  visit(program.getBody().front(), -1);
  findPhases();
  return std::move(index);
}

} // namespace

ItemIndex shardc::collectItems(ProgramOp program, const CollectiveModel &model,
                               Report &report) {
  return ItemCollector(model, report).collect(program);
}
