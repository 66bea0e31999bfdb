//===- Execution.cpp - What must hold of plans that run -------------------===//

#include "Execution.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Verify/Verify.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static std::string verify(PlannedProgram &plan, bool shrink) {
  VerifyOptions options;
  options.shrink = shrink;
  FailureOr<Verification> verification =
      verifyPlan(*plan.imported, plan.lowered(), options);
  if (failed(verification))
    return "does not run\n" + plan.text.messages();
  if (verification->holds)
    return "";
  emitDifferences(*verification);
  return "values differ\n" + plan.text.messages();
}

/// Gradients do not depend on the plan: those of one are enough.
std::string test::sameGradients(PlannedProgram &plan) {
  if (plan.plan != "none" ||
      !TestProgram::programOf(*plan.imported).getTraining())
    return "";
  VerifyOptions options;
  options.shrink = false;
  options.gradients = true;
  options.forward = *plan.forward;
  FailureOr<Verification> verification =
      verifyPlan(*plan.imported, plan.lowered(), options);
  if (failed(verification))
    return "does not run\n" + plan.text.messages();
  if (verification->holds)
    return "";
  emitDifferences(*verification);
  return "gradients differ\n" + plan.text.messages();
}

std::string test::sameValues(PlannedProgram &plan) {
  return verify(plan, /*shrink=*/false);
}

std::string test::sameValuesShrunk(PlannedProgram &plan) {
  return verify(plan, /*shrink=*/true);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {
/// One operation; bytes are those of one run, on the wire those that a device
/// sends.
struct Listed {
  std::string kind;
  std::string axes;
  double bytes = 0, wireBytes = 0;
  int64_t count = 0;

  std::string text() const {
    return llvm::formatv("{0} over {1}: {2} B, {3} B sent, {4} times", kind,
                         axes, bytes, wireBytes, count);
  }
};
} // namespace

static std::vector<Listed> priced(const Report &report) {
  std::vector<Listed> result;
  for (const ReportItem &item : report.items)
    if (const ReportCollective *moved = item.collective())
      result.push_back({item.kind, llvm::join(moved->axes, ","),
                        moved->cost.bytes, moved->cost.wireBytes, item.count});
  return result;
}

static double localBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return double(tensor.getNumElements()) *
         shd::elementBits(tensor.getElementType()) / 8;
}

/// From the local shapes, by the formulas of docs/CostModel.md#4-collectives.
static Listed emitted(Operation *op) {
  Mesh mesh = spmd::meshOf(op);
  Listed result;
  double devices = 1;
  SmallVector<StringRef> axes;
  for (StringRef axis :
       op->getAttrOfType<ArrayAttr>("axes").getAsValueRange<StringAttr>()) {
    axes.push_back(axis);
    devices *= double(mesh.axes[*mesh.find(axis)].size);
  }
  // As the report lists them; the order of a halo's devices shows in values.
  llvm::sort(axes, [&](StringRef a, StringRef b) {
    return *mesh.find(a) < *mesh.find(b);
  });
  result.kind = stringify(spmd::collectiveKind(op)).str();
  result.axes = llvm::join(axes, ",");
  double before = localBytes(op->getOperand(0).getType());
  double after = localBytes(op->getResult(0).getType());
  double others = (devices - 1) / devices;
  switch (spmd::collectiveKind(op)) {
  case CollectiveKind::AllGather:
    // Around a ring, the steps together move the parts of the others.
    result.bytes = shd::travels(op) ? after * others : after;
    result.wireBytes = after * others;
    break;
  case CollectiveKind::AllSlice:
    break;
  case CollectiveKind::AllToAll:
    result.bytes = before * devices;
    result.wireBytes = before * others;
    break;
  case CollectiveKind::ReduceScatter:
    result.bytes = shd::travels(op) ? before * others : before;
    result.wireBytes = before * others;
    break;
  case CollectiveKind::AllReduce:
    result.bytes = before;
    result.wireBytes = 2 * before * others;
    break;
  case CollectiveKind::HaloExchange:
  case CollectiveKind::HaloReduce:
    // In zigzag order rows come from both neighbours, of which two devices have
    // one each.
    result.bytes = std::abs(after - before) /
                   (shd::haloDealt(op) > 1 && devices == 2 ? 2 : 1);
    result.wireBytes = result.bytes;
    break;
  case CollectiveKind::CollectivePermute:
    result.bytes = before;
    result.wireBytes = before;
    break;
  }
  result.count = shd::executionCount(op);
  return result;
}

static std::vector<Listed> emitted(ModuleOp module) {
  std::vector<Listed> result;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (spmd::isCollective(op))
      result.push_back(emitted(op));
  });
  return result;
}

/// The grid's counts, on average over all devices; for a permute over those
/// that send, as some may keep their part.
static Listed executed(const RunResult::Executed &ran) {
  Listed result = emitted(ran.op);
  bool permutes = result.kind == "collective_permute" ||
                  StringRef(result.kind).starts_with("halo");
  double bits = permutes ? double(ran.traffic.mostBits())
                         : double(ran.traffic.totalBits()) /
                               double(ran.traffic.bits.size());
  result.wireBytes = bits / 8 / double(ran.runs);
  result.count = ran.runs;
  return result;
}

static bool isNear(double a, double b) {
  return std::abs(a - b) <= 1e-6 + 1e-9 * std::max(a, b);
}

static std::string disagreement(ArrayRef<Listed> a, ArrayRef<Listed> b,
                                StringRef what, bool bytesToo) {
  auto differ = [&](const Listed &first, const Listed &second) {
    return first.kind != second.kind || first.axes != second.axes ||
           first.count != second.count ||
           (bytesToo && (!isNear(first.bytes, second.bytes) ||
                         !isNear(first.wireBytes, second.wireBytes)));
  };
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = !differ(a[i], b[i]);
  if (same)
    return "";
  std::string text = ("priced\n");
  for (const Listed &each : a)
    text += "  " + each.text() + "\n";
  text += (what + "\n").str();
  for (const Listed &each : b)
    text += "  " + each.text() + "\n";
  return text;
}

std::string test::sameCollectives(PlannedProgram &plan) {
  VerifyOptions options;
  options.shrink = false;
  FailureOr<Verification> verification =
      verifyPlan(*plan.imported, plan.lowered(), options);
  if (failed(verification))
    return "does not run\n" + plan.text.messages();
  // Padding is priced and need not be sent.
  bool bytesToo = !TestProgram::programOf(plan.lowered()).getAllowPadding();
  std::vector<Listed> inReport = priced(*plan.report);
  std::string difference =
      disagreement(inReport, emitted(*verification->module),
                   "in the device's program", bytesToo);
  if (!difference.empty())
    return difference;
  std::vector<Listed> ran;
  for (const RunResult::Executed &each : verification->run.collectives)
    ran.push_back(executed(each));
  return disagreement(inReport, ran, "executed", bytesToo);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::string test::samePeak(PlannedProgram &plan) {
  ScheduledProgram scheduled =
      scheduleProgram(TestProgram::programOf(plan.lowered()), plan.model());
  VerifyOptions options;
  options.shrink = false;
  options.schedule = &scheduled.issues;
  FailureOr<Verification> verification =
      verifyPlan(*plan.imported, plan.lowered(), options);
  if (failed(verification))
    return "does not run\n" + plan.text.messages();
  if (verification->holds)
    return "";
  emitDifferences(*verification);
  return plan.text.messages();
}
