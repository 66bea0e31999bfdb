//===- Program.cpp - fuzz-program -----------------------------------------===//
//
// The text of a program, through the front end, the planner and the reports.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

using namespace shardc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  PlanOptions options;
  options.mode = OptMode::Propagate;
  fuzz::compile(text, options);
  // A limit that is over from the start is as deterministic as none.
  options.mode = OptMode::Optimize;
  options.timeLimitSeconds = 0;
  fuzz::compile(text, options);
  return 0;
}
