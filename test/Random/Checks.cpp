//===- Checks.cpp - What must hold of every plan --------------------------===//

#include "Checks.h"
#include "Execution.h"
#include "ReportLaws.h"
#include "mlir/Parser/Parser.h"
#include "shardc/PlanText/WritePlan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

//===----------------------------------------------------------------------===//
// round-trip
//===----------------------------------------------------------------------===//

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

/// The lines in which two texts differ first.
static std::string firstDifference(llvm::StringRef a, llvm::StringRef b) {
  while (!a.empty() || !b.empty()) {
    auto [lineA, restA] = a.split('\n');
    auto [lineB, restB] = b.split('\n');
    if (lineA != lineB)
      return ("< " + lineA + "\n> " + lineB).str();
    a = restA;
    b = restB;
  }
  return "";
}

/// Printed, parsed and printed again, the program is the same at every stage.
static std::string roundTrip(PlannedProgram &plan) {
  std::pair<const char *, ModuleOp> stages[] = {{"imported", *plan.imported},
                                                {"planned", *plan.planned},
                                                {"lowered", plan.lowered()}};
  for (auto [stage, module] : stages) {
    std::string text = print(module);
    OwningOpRef<ModuleOp> read =
        parseSourceString<ModuleOp>(text, module->getContext());
    if (!read)
      return std::string(stage) + ": does not parse\n" + plan.text.messages() +
             text;
    if (std::string again = print(*read); again != text)
      return std::string(stage) + "\n" + firstDifference(text, again);
  }
  return "";
}

//===----------------------------------------------------------------------===//
// plan-text
//===----------------------------------------------------------------------===//

/// Kind, axes, bytes and count of every collective that moves something,
/// sorted. A slice is free, and whether one is needed may depend on which
/// statement makes an `iota` or a literal.
static std::vector<std::string> collectives(const Report &report) {
  std::vector<std::string> result;
  for (const ReportItem &item : report.items)
    if (const ReportCollective *moved = item.collective())
      if (item.kind != "all_slice")
        result.push_back(llvm::formatv("{0} {1} {2} B x {3}", item.kind,
                                       llvm::join(moved->axes, ","),
                                       moved->cost.bytes, item.count));
  llvm::sort(result);
  return result;
}

static bool isNear(double a, double b) {
  return std::abs(a - b) <= 1e-12 + 1e-9 * std::max(std::abs(a), std::abs(b));
}

/// The output of `--emit-plan`, read back as written, is the same plan; for a
/// plan without a text there is an error at a place in the program.
static std::string readBack(PlannedProgram &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  plan.hasText = succeeded(
      writePlan(os, plan.text.imported(), plan.text.sourceMgr(),
                TestProgram::programOf(*plan.planned), plan.overrides));
  if (!plan.hasText) {
    llvm::StringRef said = plan.text.messages();
    bool isSaid = said.starts_with("loc(\"test.shd\":") &&
                  said.contains("this plan cannot be written as a program: ");
    return isSaid && text.empty() ? "" : "no text, but\n" + said.str() + text;
  }
  TestProgram again(text, plan.overrides);
  if (!again.module())
    return "does not read\n" + again.messages() + text;
  std::string failure;
  std::unique_ptr<PlannedProgram> read =
      planText(again, plan.overrides, "none", 0, failure);
  if (!read)
    return "has no plan\n" + failure + again.messages() + text;
  const Report &a = *plan.report, &b = *read->report;
  auto differ = [&](const char *what, double first, double second) {
    return llvm::formatv("{0}: {1:e6} in the plan, {2:e6} in its text\n{3}",
                         what, first, second, text)
        .str();
  };
  if (collectives(a) != collectives(b))
    return "collectives of the plan\n" + llvm::join(collectives(a), "\n") +
           "\nof its text\n" + llvm::join(collectives(b), "\n") + "\n" + text;
  if (!isNear(a.time.upper, b.time.upper))
    return differ("upper", a.time.upper, b.time.upper);
  if (!isNear(a.flops.device, b.flops.device))
    return differ("FLOPs", a.flops.device, b.flops.device);
  if (!isNear(a.traffic.hbm, b.traffic.hbm))
    return differ("HBM bytes", a.traffic.hbm, b.traffic.hbm);
  return "";
}

//===----------------------------------------------------------------------===//
// report
//===----------------------------------------------------------------------===//

static std::string reportLaws(PlannedProgram &plan) {
  return brokenLaw(*plan.report);
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

llvm::ArrayRef<Check> test::checks() {
  static const Check all[] = {
      {"round-trip", "the IR of every stage as text", roundTrip},
      {"plan-text", "--emit-plan read back", readBack},
      {"report", "totals and bounds of the report", reportLaws},
      {"values", "sharded and unsharded results", sameValues},
      {"shrunk", "the same of the shrunk program", sameValuesShrunk},
      {"gradients", "of training steps, by finite differences", sameGradients},
      {"collectives", "those priced, emitted and executed", sameCollectives},
      {"peak", "memory in order and scheduled, predicted and measured",
       samePeak},
  };
  return all;
}
