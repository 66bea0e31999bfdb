//===- Assignments.cpp - Assignments of a program's network ---------------===//

#include "Assignments.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::test;
using solver::Label;
using solver::Variable;

PlannedNetwork::PlannedNetwork(TestProgram &program,
                               const NetworkOptions &options)
    : program(program) {
  bool grouped = program.run(program.module(), [](OpPassManager &manager) {
    manager.addPass(shd::createShdFusionGroups());
  });
  if (!grouped)
    return;
  shd::ProgramOp op = TestProgram::programOf(program.module());
  context = createContext(op);
  if (context)
    if (auto built = buildNetwork(*context, op, options);
        std::holds_alternative<PlanNetwork>(built))
      network = std::get<PlanNetwork>(std::move(built));
}

OwningOpRef<ModuleOp> PlannedNetwork::lower(ArrayRef<Label> assignment,
                                            ArrayRef<int64_t> order) {
  apply(assignment);
  OwningOpRef<ModuleOp> lowered = program.clone();
  program.module().walk([](shd::ProgramOp op) { removeCopies(op); });
  shd::ProgramOp copy = TestProgram::programOf(*lowered);
  if (!order.empty())
    copy->setAttr(shd::kWorkOrder,
                  DenseI64ArrayAttr::get(copy.getContext(), order));
  if (!program.run(*lowered, [](OpPassManager &manager) {
        manager.addPass(shd::createShdApplyOrder());
        manager.addPass(shd::createShdInsertCollectives());
        manager.addPass(shd::createShdAnnotateCost());
      }))
    return {};
  return lowered;
}

/// Writes the operations of a block and those in them, any of those next that
/// depend on nothing else.
static void writeInAnyOrder(Block &block, std::mt19937_64 &random,
                            const llvm::DenseMap<Operation *, int64_t> &numbers,
                            std::vector<int64_t> &order) {
  std::vector<llvm::SmallVector<unsigned, 4>> before =
      shd::dependencesIn(block);
  std::vector<Operation *> operations;
  for (Operation &op : block)
    operations.push_back(&op);
  std::vector<bool> isWritten(operations.size(), false);
  for (size_t written = 0; written < operations.size(); ++written) {
    std::vector<unsigned> next;
    for (unsigned number = 0; number < operations.size(); ++number)
      if (!isWritten[number] &&
          llvm::all_of(before[number],
                       [&](unsigned earlier) { return isWritten[earlier]; }))
        next.push_back(number);
    // The terminator is the last.
    if (next.size() > 1 && next.back() + 1 == operations.size())
      next.pop_back();
    unsigned number = next[random() % next.size()];
    isWritten[number] = true;
    order.push_back(numbers.lookup(operations[number]));
    for (Region &region : operations[number]->getRegions())
      for (Block &inner : region)
        writeInAnyOrder(inner, random, numbers, order);
  }
}

std::vector<int64_t> PlannedNetwork::randomOrder(uint64_t seed) {
  shd::ProgramOp op = TestProgram::programOf(program.module());
  llvm::DenseMap<Operation *, int64_t> numbers;
  for (auto [number, each] : llvm::enumerate(shd::orderedOperations(op)))
    numbers[each] = number;
  std::mt19937_64 random(seed);
  std::vector<int64_t> order;
  writeInAnyOrder(op.getBody().front(), random, numbers, order);
  return order;
}

bool PlannedNetwork::isCanonical(ArrayRef<Label> assignment) const {
  for (auto [value, variable] :
       llvm::zip(network->graph.values, network->values)) {
    if (value.kind != GraphValue::Kind::Computed || value.uses.empty() ||
        !network->graph.chunks[value.chunk].prologue)
      continue;
    if (variable.labels[assignment[variable.variable]].inlined)
      continue;
    if (llvm::all_of(value.uses, [&](const ChunkUse &use) {
          Label label = assignment[network->chunkVariable[use.chunk]];
          return network->domains[use.chunk].labels[label].inlined &
                 (1u << use.operand);
        }))
      return false;
  }
  return true;
}

bool PlannedNetwork::hasUnreadCopy(ArrayRef<Label> assignment) const {
  return llvm::any_of(network->values, [&](const ValueVariable &value) {
    if (value.copies.empty() || assignment[value.copyVariable] == 0)
      return false;
    return llvm::none_of(value.reads, [&](const ReadVariable &read) {
      return llvm::is_contained(read.fromCopy[assignment[read.variable]], true);
    });
  });
}

AssignmentSampler::AssignmentSampler(const PlanNetwork &network, uint64_t seed)
    : problem(network.problem), random(seed),
      position(problem.variables.size(), ~0u),
      edgesOf(problem.variables.size()), isCopy(problem.variables.size()) {
  for (auto [index, edge] : llvm::enumerate(problem.edges)) {
    edgesOf[edge.first].push_back(index);
    edgesOf[edge.second].push_back(index);
  }
  for (auto [value, variable] :
       llvm::zip(network.graph.values, network.values)) {
    if (value.kind == GraphValue::Kind::Computed)
      place(network.chunkVariable[value.chunk]);
    place(variable.variable);
    if (!variable.copies.empty()) {
      place(variable.copyVariable);
      isCopy[variable.copyVariable] = true;
    }
  }
  for (Variable variable : network.chunkVariable)
    place(variable);
  for (const ValueVariable &variable : network.values)
    for (const ReadVariable &read : variable.reads)
      place(read.variable);
}

void AssignmentSampler::place(Variable variable) {
  if (position[variable] != ~0u)
    return;
  position[variable] = order.size();
  order.push_back(variable);
}

/// Whether labels of the variables placed before `last`, and its own, go with
/// `label` of `variable`.
bool AssignmentSampler::isAllowed(Variable variable, Label label,
                                  ArrayRef<Label> labels, Variable last) const {
  if (problem.variables[variable].costs[label] == solver::kForbidden)
    return false;
  return llvm::all_of(edgesOf[variable], [&](unsigned edge) {
    const solver::Edge &pair = problem.edges[edge];
    bool first = pair.first == variable;
    Variable other = first ? pair.second : pair.first;
    if (position[other] > position[last])
      return true;
    const solver::Table &table = problem.tables[pair.table];
    return (first ? table.at(label, labels[other])
                  : table.at(labels[other], label)) != solver::kForbidden;
  });
}

/// Whether later neighbours of `variable` still have a label each.
bool AssignmentSampler::leavesLabels(Variable variable,
                                     ArrayRef<Label> labels) const {
  return llvm::all_of(edgesOf[variable], [&](unsigned edge) {
    const solver::Edge &pair = problem.edges[edge];
    Variable other = pair.first == variable ? pair.second : pair.first;
    if (position[other] <= position[variable])
      return true;
    size_t count = problem.variables[other].costs.size();
    return llvm::any_of(llvm::seq<Label>(0, count), [&](Label label) {
      return isAllowed(other, label, labels, variable);
    });
  });
}

bool AssignmentSampler::tryDraw(std::vector<Label> &labels) {
  for (Variable variable : order) {
    std::vector<Label> plain, copies;
    size_t count = problem.variables[variable].costs.size();
    for (Label label = 0; label < count; ++label) {
      labels[variable] = label;
      if (isAllowed(variable, label, labels, variable) &&
          leavesLabels(variable, labels))
        (isCopy[variable] && label > 0 ? copies : plain).push_back(label);
    }
    if (plain.empty() && copies.empty())
      return false;
    const auto &list = copies.empty() || (!plain.empty() && random() % 3 != 0)
                           ? plain
                           : copies;
    labels[variable] = list[random() % list.size()];
  }
  return true;
}

std::optional<std::vector<Label>> AssignmentSampler::draw() {
  std::vector<Label> labels(problem.variables.size(), 0);
  constexpr unsigned maxTries = 2000;
  for (unsigned i = 0; i < maxTries; ++i)
    if (tryDraw(labels))
      return labels;
  return std::nullopt;
}

// Without the code that prices plans: max of the terms of a kernel, of which
// the calibrated one has a third that is added, and sum of a calibrated
// collective's.
int64_t test::totalPicoseconds(shd::ProgramOp program) {
  int64_t total = 0;
  program->walk([&](Operation *op) {
    double seconds = 0;
    if (auto cost = op->getAttrOfType<shd::GroupCostAttr>(shd::kGroupCost)) {
      seconds = std::max({double(cost.getMatrixS()), double(cost.getVectorS()),
                          double(cost.getHbmS())});
      if (DenseF64ArrayAttr terms = cost.getCalibratedS())
        seconds = std::max(terms[0], terms[1]) + terms[2];
    } else if (auto cost = op->getAttrOfType<shd::CollectiveCostAttr>("cost")) {
      seconds =
          std::max(double(cost.getBandwidthS()), double(cost.getLatencyS()));
      if (DenseF64ArrayAttr terms = cost.getCalibratedS())
        seconds = terms[0] + terms[1] + terms[2];
    }
    total += toPicoseconds(seconds) * shd::executionCount(op);
  });
  return total;
}
