//===- PrintProblem.cpp - A program's network for other solvers -----------===//

#include "shardc/Contest/Write.h"
#include "shardc/Optimizer/Network.h"
#include "shardc/Pipelines/Pipelines.h"

using namespace mlir;
using namespace shardc;

LogicalResult shardc::printProblem(llvm::raw_ostream &os,
                                   shd::ProgramOp program,
                                   std::optional<int64_t> memoryLimit) {
  std::unique_ptr<PlanningContext> context = createContext(program);
  if (!context)
    return failure();
  NetworkOptions options;
  options.memoryLimit = memoryLimit.value_or(context->machine().usableMemory());
  std::variant<PlanNetwork, NoNetwork> built =
      buildNetwork(*context, program, options);
  auto *network = std::get_if<PlanNetwork>(&built);
  if (!network) {
    if (std::get<NoNetwork>(built) == NoNetwork::Contradiction)
      return failure();
    return program.emitError("the program has too many plans to search, so "
                             "there is no problem to emit");
  }
  std::optional<std::string> wrong = network->problem.check();
  if (!wrong)
    wrong = contest::writeProblem(os, network->problem, program.getSym());
  if (!wrong)
    return success();
  return program.emitError("the contest's format cannot express this problem: ")
         << *wrong;
}
