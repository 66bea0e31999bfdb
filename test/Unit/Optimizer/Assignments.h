//===- Assignments.h - Assignments of a program's network -----*- C++ -*-===//
//
// Random legal assignments of a network, and what the explicit program that one
// of them stands for costs, counted without the optimizer.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_OPTIMIZER_ASSIGNMENTS_H
#define SHARDC_TEST_UNIT_OPTIMIZER_ASSIGNMENTS_H

#include "TestProgram.h"
#include "shardc/Optimizer/Network.h"
#include <random>

namespace shardc::test {

/// A program with fusion groups and its network.
class PlannedNetwork {
public:
  PlannedNetwork(TestProgram &program, const NetworkOptions &options);

  /// False if the program has errors or no plan at all.
  explicit operator bool() const { return network.has_value(); }

  const PlanNetwork &get() const { return *network; }
  const solver::Problem &problem() const { return network->problem; }
  PlanningContext &planning() { return *context; }

  /// Pins on every value and use of the program, as the optimizer writes them.
  void apply(llvm::ArrayRef<solver::Label> assignment) {
    applyAssignment(*context, *network, assignment);
  }

  /// The program with the assignment made explicit, in a work order (empty:
  /// that of the text); null after an error.
  mlir::OwningOpRef<mlir::ModuleOp>
  lower(llvm::ArrayRef<solver::Label> assignment,
        llvm::ArrayRef<int64_t> order = {});
  /// An order that dependences allow.
  std::vector<int64_t> randomOrder(uint64_t seed);

  /// False where an operation's value is stored although every user computes it
  /// in place: the explicit program does not store it.
  bool isCanonical(llvm::ArrayRef<solver::Label> assignment) const;

  /// True where a copy is made that nobody reads.
  bool hasUnreadCopy(llvm::ArrayRef<solver::Label> assignment) const;

private:
  TestProgram &program;
  std::unique_ptr<PlanningContext> context;
  std::optional<PlanNetwork> network;
};

/// Draws assignments without forbidden choices: variables in program order,
/// each among the labels that go with what was chosen before.
class AssignmentSampler {
public:
  AssignmentSampler(const PlanNetwork &network, uint64_t seed);

  /// Nothing after too many dead ends.
  std::optional<std::vector<solver::Label>> draw();

private:
  void place(solver::Variable variable);
  bool tryDraw(std::vector<solver::Label> &labels);
  bool isAllowed(solver::Variable variable, solver::Label label,
                 llvm::ArrayRef<solver::Label> labels,
                 solver::Variable last) const;
  bool leavesLabels(solver::Variable variable,
                    llvm::ArrayRef<solver::Label> labels) const;

  const solver::Problem &problem;
  std::mt19937_64 random;
  std::vector<solver::Variable> order;
  std::vector<unsigned> position;
  std::vector<std::vector<unsigned>> edgesOf;
  /// Copies are drawn less often than none.
  std::vector<bool> isCopy;
};

/// The sum of all items of an explicit program: each group and each collective,
/// rounded to picoseconds, times how often it runs.
int64_t totalPicoseconds(shd::ProgramOp program);

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_OPTIMIZER_ASSIGNMENTS_H
