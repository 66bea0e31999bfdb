//===- BatchChoice.cpp - The batch that `batch = auto` chooses ------------===//
//
// What a layout allows depends on which devices divide the batch, and memory
// grows with it. So of the batches that all devices divide those up to some
// size fit, and the others do not: doubling and halving find the size. Beyond
// it only batches may fit that fewer devices divide, less than one more for
// each device: for each number of devices that divides the whole, a few
// multiples are tried, the largest numbers first.
//
//===----------------------------------------------------------------------===//

#include "shardc/Questions/BatchChoice.h"
#include "shardc/Questions/Evaluator.h"
#include <numeric>

using namespace mlir;
using namespace shardc;

/// A batch that is large enough to say that there is no largest one.
static constexpr int64_t kMostBatch = int64_t(1) << 40;
/// The chosen batch is planned with the rest of a time limit.
static constexpr double kSearchShare = 0.5;

namespace {

class BatchSearch {
public:
  BatchSearch(const ProgramText &text, llvm::ArrayRef<Setting> settings,
              const Program &probe, const MeshChoiceOptions &options);
  std::optional<BatchChoice> run(std::string &error);

private:
  bool fits(int64_t parts);
  bool isKnownTooLarge(int64_t parts) const;
  bool tryOne(int64_t parts);
  void searchMultiples();
  void searchDivisors();

  llvm::ArrayRef<Setting> settings;
  Program::AutoBatch batch;
  Evaluator evaluator;
  solver::Deadline deadline;
  /// Microbatches, and devices that may divide each.
  int64_t microbatches = 1, devices = 1, chips = 1;
  /// Elements of a microbatch: the most that fit, and those that do not.
  int64_t best = 0;
  llvm::SmallVector<int64_t> tooLarge;
  /// The least that is legal, 0 before there is one.
  int64_t least = 0;
  int64_t tried = 0;
  std::string firstError;
  bool isCut = false;
};

} // namespace

static std::optional<double> partOf(std::optional<double> seconds) {
  return seconds ? std::optional(*seconds * kSearchShare) : std::nullopt;
}

/// Whatever the objective, the fit alone counts: plans for the time without
/// overlap are found in a fraction of the time.
static PlanOptions forSearch(PlanOptions options) {
  options.objective = Objective::Upper;
  options.timeLimitSeconds = partOf(options.timeLimitSeconds);
  return options;
}

BatchSearch::BatchSearch(const ProgramText &text,
                         llvm::ArrayRef<Setting> settings, const Program &probe,
                         const MeshChoiceOptions &options)
    : settings(settings), batch(*probe.autoBatch),
      evaluator(text, forSearch(options.plan), options.file),
      deadline(partOf(options.plan.timeLimitSeconds), options.interrupted) {
  evaluator.stopAt(options.interrupted);
  evaluator.seekFit();
  auto program = *(*probe.module).getOps<shd::ProgramOp>().begin();
  microbatches = program.getTraining()->getMicrobatches();
  for (const MeshAxis &axis : probe.mesh.axes) {
    devices *= axis.isStages ? 1 : axis.size;
    chips *= axis.size;
  }
  if (probe.machine && probe.autoMesh)
    devices = chips = probe.machine->numChips();
}

/// Plans a batch whose microbatches have so many elements.
bool BatchSearch::fits(int64_t parts) {
  Variant variant;
  variant.point.assign(settings.begin(), settings.end());
  Setting &setting = variant.point.emplace_back();
  setting.name = batch.dim;
  setting.number = parts * microbatches;
  setting.where = batch.where;
  variant.timeLimitSeconds = deadline.remaining();
  Outcome outcome = evaluator.plan(variant);
  ++tried;
  if (!outcome.report) {
    if (firstError.empty())
      firstError = std::move(outcome.error);
    return false;
  }
  least = least > 0 ? std::min(least, parts) : parts;
  isCut |= outcome.report->plan.noneInTime;
  return outcome.report->memory.fits;
}

/// True if as many devices divide one that is too large and not larger.
bool BatchSearch::isKnownTooLarge(int64_t parts) const {
  return llvm::any_of(tooLarge, [&](int64_t other) {
    return other <= parts &&
           std::gcd(other, devices) % std::gcd(parts, devices) == 0;
  });
}

bool BatchSearch::tryOne(int64_t parts) {
  if (isKnownTooLarge(parts))
    return false;
  if (deadline.expired() && tried > 0) {
    isCut = true;
    return false;
  }
  if (!fits(parts)) {
    if (!isCut)
      tooLarge.push_back(parts);
    return false;
  }
  best = std::max(best, parts);
  return true;
}

/// Finds the largest multiple of all devices.
void BatchSearch::searchMultiples() {
  int64_t high = devices;
  while (high <= kMostBatch && tryOne(high))
    high *= 2;
  while (!isCut && high - best > devices) {
    int64_t middle = best + (high - best) / devices / 2 * devices;
    if (!tryOne(middle))
      high = middle;
  }
}

void BatchSearch::searchDivisors() {
  for (int64_t part = devices - 1; part > 0 && !isCut; --part)
    if (devices % part == 0)
      while (tryOne((best / part + 1) * part)) {
      }
}

std::optional<BatchChoice> BatchSearch::run(std::string &error) {
  searchMultiples();
  if (best > kMostBatch / 2) {
    error = "`batch = auto` needs a largest batch, but " +
            std::to_string(best) + " fits as well";
    return std::nullopt;
  }
  searchDivisors();
  if (least == 0) {
    error = firstError;
    return std::nullopt;
  }
  bool hasFit = best > 0;
  int64_t size = (hasFit ? best : least) * microbatches;
  BatchChoice choice;
  choice.setting.name = batch.dim;
  choice.setting.number = size;
  choice.setting.where = batch.where;
  choice.search.dim = batch.dim;
  choice.search.size = size;
  choice.search.perChip = double(size) / double(chips);
  if (!tooLarge.empty())
    choice.search.tooLarge = *llvm::min_element(tooLarge) * microbatches;
  choice.search.tried = tried;
  choice.search.fits = hasFit;
  choice.search.isCut = isCut;
  return choice;
}

std::optional<BatchChoice> shardc::chooseBatch(const ProgramText &text,
                                               llvm::ArrayRef<Setting> settings,
                                               const Program &probe,
                                               const MeshChoiceOptions &options,
                                               std::string &error) {
  return BatchSearch(text, settings, probe, options).run(error);
}
