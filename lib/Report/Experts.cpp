//===- Experts.cpp - Experts of a planned program -------------------------===//

#include "Experts.h"
#include "Collect.h"
#include "Names.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Optimizer/GroupCosts.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

//===----------------------------------------------------------------------===//
// Routes
//===----------------------------------------------------------------------===//

ExpertRoutes::ExpertRoutes(ProgramOp program) {
  program->walk([&](DispatchOp op) {
    if (getPhase(op) != Phase::Forward)
      return;
    ExpertRoute route;
    route.experts = op.getExperts();
    route.slots = op.getSlots();
    llvm::append_range(
        route.groups,
        ExpertIndices::of(cast<ExpertsOpInterface>(op.getOperation())).groups);
    route.extents = ExpertExtents::of(op);
    route.k = op.getK();
    auto known = llvm::find_if(routes, [&](const ExpertRoute &other) {
      return other.experts == route.experts && other.slots == route.slots &&
             other.extents.experts == route.extents.experts &&
             other.extents.slots == route.extents.slots;
    });
    if (known == routes.end())
      known = routes.insert(routes.end(), route);
    known->count += double(executionCount(op));
  });
}

const ExpertRoute *ExpertRoutes::find(Operation *op) const {
  if (routes.empty())
    return nullptr;
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  auto has = [&](StringRef name, int64_t extent) {
    std::optional<unsigned> factor = rule.findFactor(name);
    return factor && rule.factors[*factor].extent == extent;
  };
  for (const ExpertRoute &route : routes)
    if (has(route.experts, route.extents.experts) &&
        has(route.slots, route.extents.slots))
      return &route;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

namespace {
/// How the forward pass uses a weight.
struct WeightUse {
  /// Rows of it are gathered; it is read in another way.
  bool gathered = false, read = false;
  /// The route by which tokens pick its experts.
  const ExpertRoute *route = nullptr;
  /// Devices that have different experts, and those that have the slots of
  /// different groups of tokens for the same experts.
  int64_t devices = 1, groupParts = 1;
};
} // namespace

/// The same elements in another layout or type.
static bool passesOn(Operation *op) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  return isa<ReshardOp, PartOp>(op) || isCollective(op) ||
         (elementwise && (elementwise.getFunction() == Function::Cast ||
                          elementwise.getFunction() == Function::Copy));
}

static bool isOfScale(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && passesOn(op))
    op = op->getOperand(0).getDefiningOp();
  return op && isa<DeclareOp>(op) &&
         isScale(getElementTypeOrSelf(op->getResult(0).getType()));
}

/// The other factor of a product with a scale, or null.
static Value scaledIn(Operation *op) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  if (!elementwise || elementwise.getFunction() != Function::Mul)
    return nullptr;
  for (unsigned i : {0, 1})
    if (isOfScale(op->getOperand(1 - i)))
      return op->getOperand(i);
  return nullptr;
}

/// The weight whose elements a value has, perhaps scaled; or null.
static DeclareOp weightOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto declare = dyn_cast<DeclareOp>(op))
      return declare.getKind() == TensorKind::Weight ? declare : DeclareOp();
    value = passesOn(op) ? op->getOperand(0) : scaledIn(op);
    if (!value)
      return nullptr;
  }
  return nullptr;
}

static bool gathersRows(Operation *op, unsigned operand) {
  auto gather = dyn_cast<GatherOp>(op);
  return gather && operand == 0 &&
         llvm::any_of(gather.getPositions(), [](Value positions) {
           return cast<RankedTensorType>(positions.getType()).getRank() > 0;
         });
}

static void addUse(ShardingRuleOpInterface op, unsigned operand,
                   const ExpertRoutes &routes, const Mesh &mesh,
                   WeightUse &use) {
  if (gathersRows(op, operand)) {
    use.gathered = true;
    return;
  }
  use.read = true;
  const ExpertRoute *route = routes.find(op);
  auto names = op.getIndexing().getOperandIndices(operand);
  if (!route || !llvm::is_contained(names, route->experts))
    return;
  use.route = route;
  ShardingRule rule = op.getShardingRule();
  Strategy strategy = explicitStrategy(mesh, op, rule);
  use.groupParts = 1;
  for (auto [factor, axes] :
       llvm::zip_equal(rule.factors, strategy.factorAxes)) {
    if (factor.name == route->experts)
      use.devices = mesh.groupSize(axes);
    else if (llvm::is_contained(route->groups, factor.name))
      use.groupParts *= mesh.groupSize(axes);
  }
}

static llvm::DenseMap<DeclareOp, WeightUse>
usesOfWeights(ProgramOp program, const ExpertRoutes &routes, const Mesh &mesh) {
  llvm::DenseMap<DeclareOp, WeightUse> uses;
  program->walk([&](ShardingRuleOpInterface op) {
    if (getPhase(op) != Phase::Forward || passesOn(op))
      return;
    unsigned operands = op->getNumOperands() - op.getStats().size();
    for (unsigned i = 0; i < operands; ++i)
      if (DeclareOp weight = weightOf(op->getOperand(i)))
        addUse(op, i, routes, mesh, uses[weight]);
  });
  return uses;
}

/// The part of experts that the tokens of one of so many parts of the groups
/// pick on average, if they pick at random.
static double touchedShare(const ExpertRoute &route, int64_t groupParts) {
  double tokens = double(route.extents.tokens) * double(route.extents.groups);
  return 1 - std::pow(1 - double(route.k) / double(route.extents.experts),
                      tokens / double(groupParts));
}

void shardc::collectExperts(ProgramOp program, const ExpertRoutes &routes,
                            const Mesh &mesh, Report &report) {
  auto uses = usesOfWeights(program, routes, mesh);
  WeightUse most;
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (!declare.isParameter())
      continue;
    int64_t elements = elementsOfAll(declare, program.getPipeline());
    WeightUse use = uses.lookup(declare);
    if (use.route)
      elements = elements / use.route->extents.experts * use.route->k;
    if (use.devices * use.groupParts > most.devices * most.groupParts)
      most = use;
    report.activeParameters = saturatingAdd(report.activeParameters, elements);
    if (!use.gathered || use.read)
      report.activeWithoutEmbedding =
          saturatingAdd(report.activeWithoutEmbedding, elements);
  }
  if (routes.all().empty())
    return;
  const ExpertRoute &first = routes.all().front();
  Report::Experts &experts = report.experts.emplace();
  experts.total = first.extents.experts;
  experts.perToken = first.k;
  experts.capacityFactor = first.factor();
  double needed = 0, executed = 0;
  for (const ExpertRoute &route : routes.all()) {
    needed += route.needed() * route.count;
    executed += route.executed() * route.count;
  }
  experts.executedToModel = executed / needed;
  double all = double(experts.total);
  experts.touched = all * touchedShare(first, /*groupParts=*/1);
  experts.devices = most.devices;
  experts.touchedPerDevice =
      all / double(most.devices) * touchedShare(first, most.groupParts);
}
