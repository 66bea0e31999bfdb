//===- ReportLaws.cpp - What holds of every report ------------------------===//

#include "ReportLaws.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace shardc;

namespace {

/// Times are sums of picoseconds, printed as seconds.
constexpr double kPicosecond = 1e-12;

double secondsOf(Picoseconds time) { return double(time) / 1e12; }

using Named = std::vector<std::pair<std::string, double>>;

double &entry(Named &named, const std::string &name) {
  for (auto &[known, value] : named)
    if (known == name)
      return value;
  return named.emplace_back(name, 0).second;
}

class Laws {
public:
  explicit Laws(const Report &report) : report(report) {}

  std::string broken() {
    checkTotals();
    checkBounds();
    checkUsefulWork();
    return text;
  }

private:
  void say(const llvm::Twine &what, double found, double expected) {
    text += llvm::formatv("{0}: {1:e15} in the report, {2:e15} expected\n",
                          what.str(), found, expected);
  }
  void expectNear(const llvm::Twine &what, double found, double expected,
                  double slack) {
    if (!(std::abs(found - expected) <= slack))
      say(what, found, expected);
  }
  void expectSeconds(const llvm::Twine &what, double found, double expected) {
    expectNear(what, found, expected,
               std::max(kPicosecond, 1e-12 * std::abs(found)));
  }
  void expectAtMost(const llvm::Twine &what, double smaller, double larger) {
    if (!(smaller <= larger))
      say(what, smaller, larger);
  }

  /// Of hidden collectives, what costs kernels nothing; no program here has
  /// transfers to the host.
  double overlap() const {
    if (report.calibration)
      for (const auto &figure : report.calibration->figures)
        if (figure.name == "overlap")
          return figure.value.value_or(1);
    return 1;
  }

  void checkTotals();
  void checkBounds();
  void checkUsefulWork();

  const Report &report;
  std::string text;
};

} // namespace

/// Every total, from its items.
void Laws::checkTotals() {
  double compute = 0, hbm = 0, computeBound = 0, hbmBound = 0, moved = 0;
  double bytes = 0, flops = 0;
  Named network, sent, physical;
  for (const ReportItem &item : report.items) {
    double runs = double(item.count), total = secondsOf(item.total);
    if (item.total != toPicoseconds(item.seconds) * item.count)
      say("total of " + item.name, total, item.seconds * runs);
    if (const ReportCompute *part = item.compute()) {
      compute += secondsOf(toPicoseconds(part->cost.computeSeconds())) * runs;
      hbm += secondsOf(toPicoseconds(part->cost.hbmSeconds)) * runs;
      (item.bound() == "compute" ? computeBound : hbmBound) += total;
      bytes += part->cost.hbmBytes * runs;
      flops += part->cost.matrixFlops * runs;
      double roofline =
          std::max({part->cost.matrixSeconds, part->cost.vectorSeconds,
                    part->cost.hbmSeconds});
      if (const auto &reached = part->cost.calibrated) {
        expectNear("seconds of " + item.name, item.seconds,
                   std::max(reached->computeSeconds, reached->hbmSeconds) +
                       reached->overheadSeconds,
                   0);
        // No figure is more than a peak.
        expectAtMost("roofline of " + item.name, roofline, item.seconds);
      } else {
        expectNear("seconds of " + item.name, item.seconds, roofline, 0);
      }
      continue;
    }
    const ReportCollective &collective = *item.collective();
    moved += total;
    if (const auto &reached = collective.cost.calibrated)
      expectNear("seconds of " + item.name, item.seconds,
                 reached->fixedSeconds + reached->bandwidthSeconds +
                     reached->rampSeconds,
                 0);
    else
      expectNear("seconds of " + item.name, item.seconds,
                 std::max(collective.cost.bandwidthSeconds,
                          collective.cost.latencySeconds),
                 0);
    std::string axes = llvm::join(collective.axes, ",");
    entry(network, axes) += total;
    entry(sent, axes) += collective.cost.wireBytes * runs;
    for (unsigned axis : collective.cost.occupies)
      entry(physical, report.hardware.levels[axis].name) += total;
  }
  const Report::Time &time = report.time;
  expectSeconds("compute", time.compute, compute);
  expectSeconds("hbm", time.hbm, hbm);
  expectSeconds("bound by compute", time.computeBound, computeBound);
  expectSeconds("bound by hbm", time.hbmBound, hbmBound);
  expectSeconds("device", time.device, computeBound + hbmBound);
  expectSeconds("collectives", time.collectives, moved);
  expectSeconds("upper", time.upper, computeBound + hbmBound + moved);
  double busiest = 0;
  for (const auto &[name, seconds] : time.physical) {
    expectSeconds("busy " + name, seconds, entry(physical, name));
    busiest = std::max(busiest, seconds);
  }
  // A part of what is hidden, in 64ths, costs the kernels beside it time.
  double least = std::max(time.device, busiest);
  double lost = std::round(64 * (1 - overlap())) / 64;
  expectSeconds("lower", time.lower,
                least + lost * (time.device + moved - least));
  for (const auto &[name, seconds] : time.network)
    expectSeconds("over " + name, seconds, entry(network, name));
  for (const auto &[name, each] : report.traffic.network)
    expectNear("sent over " + name, each, entry(sent, name), 1e-6 * each);
  expectNear("HBM bytes", report.traffic.hbm, bytes, 1e-9 * bytes);
  expectNear("FLOPs", report.flops.device, flops, 1e-9 * flops);
  const Report::Memory &memory = report.memory;
  expectNear("peak", double(memory.peak),
             double(memory.weights + memory.gradients + memory.optimizer +
                    memory.saved + memory.states + memory.inputs +
                    memory.activations + memory.buffers),
             0);
}

void Laws::checkBounds() {
  const Report::Time &time = report.time;
  expectAtMost("lower is at most scheduled", time.lower, time.scheduled);
  expectAtMost("scheduled is at most upper", time.scheduled, time.upper);
  expectAtMost("device is at most lower", time.device, time.lower);
  // Each collective occupies some network; none is busier than the busiest.
  expectAtMost("upper is at most lower on each resource", time.upper,
               time.lower * double(1 + time.physical.size()) * (1 + 1e-12));
}

void Laws::checkUsefulWork() {
  double devices = 1;
  for (const Report::Axis &axis : report.mesh)
    devices *= double(axis.size);
  expectAtMost("useful FLOPs are done", report.flops.model * (1 - 1e-12),
               report.flops.device * devices);
  if (!report.flops.mfu || !report.flops.hfu)
    return;
  expectAtMost("MFU is at most HFU", *report.flops.mfu,
               *report.flops.hfu * (1 + 1e-9));
  expectAtMost("HFU is at most 1", *report.flops.hfu, 1 + 1e-9);
}

std::string shardc::test::brokenLaw(const Report &report) {
  return Laws(report).broken();
}
