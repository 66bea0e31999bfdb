//===- Questions.cpp - fuzz-questions -------------------------------------===//
//
// The texts of command-line options, one a line: `sweep B in 1, 2`,
// `crossover B in 1..64`, `mesh [X=4]`, `hardware tpu_v5e[4]`, `dim B=8`.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "shardc/Questions/LegalValues.h"
#include "llvm/Support/SourceMgr.h"

using namespace shardc;
using fuzz::Quiet;
using llvm::StringRef;

static constexpr const char *kProgram = R"(
hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim B = 512, D = 1024, F = 4 * D / 2
input In: bf16[B@X, D]
weight W: bf16[D, F@Y]
H[B, F] = relu(In[B, D] * W[D, F])
output H
)";

/// Imports the program at one point.
static void setPoint(Quiet &quiet, const ProgramText &text,
                     const Setting &setting) {
  bool legal = checkSettings(text, &quiet.context, setting);
  std::optional<Program> program = importProgram(text, &quiet.context, setting);
  fuzz::require(legal || !program, "what can be imported has legal settings");
}

static void askSweep(Quiet &quiet, const ProgramText &text, StringRef sweep) {
  unsigned before = quiet.errors;
  auto settings = readSweep(text, &quiet.context, sweep);
  fuzz::require(settings.has_value() == (quiet.errors == before),
                "a sweep is read unless there is an error");
  if (!settings)
    return;
  fuzz::require(!settings->empty(), "a sweep has a value");
  setPoint(quiet, text, settings->front());
  setPoint(quiet, text, settings->back());
}

static void askCrossover(Quiet &quiet, const ProgramText &text,
                         StringRef crossover) {
  unsigned before = quiet.errors;
  auto range = readCrossover(text, &quiet.context, crossover);
  fuzz::require(range.has_value() == (quiet.errors == before),
                "a crossover is read unless there is an error");
  if (!range)
    return;
  setPoint(quiet, text, range->at(range->low));
  setPoint(quiet, text, range->at(range->high));
  (void)writtenExtent(text, &quiet.context, range->name);
  if (!range->listed.empty())
    return;
  LegalValues values(range->low, range->high, range->low, range->step,
                     range->step * divisibilityPeriod(text, &quiet.context));
  std::vector<int64_t> samples = values.samples(/*most=*/256, /*perOctave=*/4);
  fuzz::require(!samples.empty() && samples.front() == values.first() &&
                    samples.back() == values.last() && llvm::is_sorted(samples),
                "samples ascend from the first value to the last");
  std::optional<int64_t> middle = values.between(values.first(), values.last());
  fuzz::require(!middle ||
                    (*middle > values.first() && *middle < values.last()),
                "what is between two values is between them");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  Overrides overrides;
  std::vector<StringRef> sweeps, crossovers;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    auto [option, value] = line.split(' ');
    text = rest;
    if (option == "sweep")
      sweeps.push_back(value);
    else if (option == "crossover")
      crossovers.push_back(value);
    else if (option == "mesh")
      overrides.mesh = value.str();
    else if (option == "hardware")
      overrides.hardware = value.str();
    else if (option == "dim")
      overrides.dims.push_back(value.str());
  }
  Quiet quiet;
  llvm::SourceMgr sourceMgr;
  fuzz::setText(sourceMgr, kProgram);
  if (!checkOverrides(sourceMgr, &quiet.context, overrides)) {
    fuzz::require(quiet.errors != 0, "a wrong override is an error");
    return 0;
  }
  std::optional<ProgramText> program =
      readProgram(sourceMgr, &quiet.context, overrides);
  if (!program)
    return 0;
  (void)importProgram(*program, &quiet.context);
  for (StringRef sweep : sweeps)
    askSweep(quiet, *program, sweep);
  for (StringRef crossover : crossovers)
    askCrossover(quiet, *program, crossover);
  return 0;
}
