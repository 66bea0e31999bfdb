//===- ServingSweep.h - Sweeps over programs that serve --------*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_SERVINGSWEEP_H
#define SHARDC_QUESTIONS_SERVINGSWEEP_H

#include "shardc/Questions/Questions.h"
#include "shardc/Questions/Serving.h"

namespace shardc {

/// `--sweep` of a program with a `serve` block: latency against throughput and
/// price. Diagnostics of the flags go to `context`.
Answer answerServingSweep(llvm::raw_ostream &os, const Questions &questions,
                          const ServingOptions &options,
                          const ProgramText &program,
                          mlir::MLIRContext *context);

} // namespace shardc

#endif // SHARDC_QUESTIONS_SERVINGSWEEP_H
