//===- Serving.h - Prefill and decode planned together --------*- C++ -*-===//
//
// A program with a `serve` block becomes two: prefill of prompts and a decode
// step of a batch. Both have one layout of the weights, and together the least
// cost of a request (docs/Serving.md).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_SERVING_H
#define SHARDC_QUESTIONS_SERVING_H

#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Questions/MeshChoice.h"
#include "shardc/Questions/TrialRunner.h"
#include "shardc/Solver/Deadline.h"

namespace shardc {

/// Upper limits on the time to the first token and of each further one.
struct ServingTargets {
  std::optional<double> firstSeconds, tokenSeconds;

  bool any() const { return firstSeconds || tokenSeconds; }
};

/// Two plans and what serving with them costs.
struct ServingPlan {
  shd::Serving serving;
  Outcome prefill, decode;
  Outcome &of(shd::ServingPhase phase) {
    return phase == shd::ServingPhase::Prefill ? prefill : decode;
  }
  const Outcome &of(shd::ServingPhase phase) const {
    return phase == shd::ServingPhase::Prefill ? prefill : decode;
  }
  /// The mesh of each phase, by its number, that `mesh auto` chose; else
  /// nothing. Only separate machines may have different ones.
  std::optional<Setting> meshes[2];

  /// Bytes of a device that decode's caches take while prefill runs; none on
  /// separate machines.
  int64_t besidePrefill = 0;
  /// Seconds in which the caches of one prefill's prompts get into decode's.
  double insertion = 0;
  /// A decode step at the last token of each sequence, in seconds.
  double tokenLast = 0;
  /// Bytes of caches: of a token (those that grow with the context), and of a
  /// sequence.
  double stateBytesPerToken = 0, stateBytesPerSequence = 0;
  int64_t sequencesThatFit = 0;
  /// Bytes of weights and of caches that a device reads in a decode step.
  double weightBytesRead = 0, stateBytesRead = 0;
  /// Proven: no pair of plans serves a request for fewer chip-seconds.
  std::optional<double> boundOfRequest;
  /// Plans of either phase that were made.
  int64_t planned = 0;
  /// Seconds of the search, if it had a limit.
  std::optional<double> searchSeconds;
  /// The time limit or Ctrl-C ended the search, or that of a phase's plan.
  bool isCutShort = false;

  double firstToken() const { return prefill.report->time.scheduled; }
  double token() const { return decode.report->time.scheduled; }
  double tokensPerSecond() const;
  double tokensPerSecondWithPrefill() const;
  double requestsPerSecond() const;
  double tokensPerSecondPerChip() const;
  double prefillServers() const;
  /// Chip-seconds and USD of one request: prefill, insertion and its share of
  /// decode steps.
  double chipSecondsOfRequest() const;
  std::optional<double> usdOfRequest() const;
  /// For comparisons: USD of a request, or without prices chip-seconds.
  double cost() const {
    return usdOfRequest().value_or(chipSecondsOfRequest());
  }
  std::optional<double> usdPerMillionPromptTokens() const;
  std::optional<double> usdPerMillionOutputTokens() const;
  /// Relative distance of the cost of a request to its bound.
  std::optional<double> gap() const;

  /// Bytes of a device at the worst moment of both phases.
  int64_t peakMemory() const;
  bool fits() const;
  bool meets(const ServingTargets &targets) const;
};

/// Figures of a point that no pair of plans beats.
struct ServingBound {
  double firstSeconds = 0, tokenSeconds = 0;
  /// USD of a request, or chip-seconds of machines without a price: for each
  /// second of a prefill, and of a decode step.
  double costOfFirst = 0, costOfToken = 0;
  bool hasPrice = false;
  /// False if weights and caches take more than all chips have.
  bool fits = true;

  double cost() const {
    return firstSeconds * costOfFirst + tokenSeconds * costOfToken;
  }
  /// With `slack`, targets are so many times as long.
  bool keeps(const ServingTargets &targets, double slack = 1) const {
    auto isWithin = [&](double seconds, std::optional<double> target) {
      return !target || seconds <= slack * *target;
    };
    return fits && isWithin(tokenSeconds, targets.tokenSeconds) &&
           isWithin(firstSeconds, targets.firstSeconds);
  }
};

/// Estimates of pairs differ from what they take by less than this factor, most
/// of it the same for alike points: beyond, a point is unlikely to be the
/// answer.
inline constexpr double kNearEstimate = 1.05;

/// What comes of planning for serving: a pair of plans, or why there is none.
struct ServingOutcome {
  std::optional<ServingPlan> plan;
  std::string error = {}, loc = {};
  /// Set if bounds of the phases rule out that the point is the answer.
  std::optional<ServingBound> ruledOut = {};
  /// Set if the plans of each phase alone make that unlikely.
  std::optional<ServingBound> unlikely = {};
};

struct ServingOptions {
  PlanOptions plan;
  ServingTargets targets;
  /// The name of the program in reports.
  std::string file;
  unsigned jobs = 1;
  bool showProgress = false;
  const std::atomic<bool> *interrupted = nullptr;
  /// A point may be ruled out: its bound without a plan, and the cost of a
  /// request that is known already.
  std::optional<ServingBound> bound = {};
  std::optional<double> cutoff = {};
  /// Share of the usual work for the choice of meshes. With less than all,
  /// pairs are left out that the plans of each phase alone make unlikely.
  double meshWork = 1;
};

/// Plans both phases of the program at a point of a sweep.
ServingOutcome planServing(const ProgramText &text, const Point &point,
                           const ServingOptions &options);

/// The settings with which a phase of a planned program is imported.
Point phasePoint(const ServingPlan &plan, const Point &point,
                 shd::ServingPhase phase);

/// The report for people, and the report of each plan.
void printServing(llvm::raw_ostream &os, const ServingPlan &plan, bool colour);
/// One object with the key `serving`, which has the reports of both plans.
void printServingJson(llvm::raw_ostream &os, const ServingPlan &plan);

/// The bound by the work of both phases, without a plan; nothing if the point
/// is not legal.
std::optional<ServingBound> boundServing(const ProgramText &text,
                                         const Point &point,
                                         const ServingOptions &options);

/// Estimates the cheapest pair on a mesh of at most two axes, as if nothing
/// overlapped and each phase had its own layout of weights: quick, and no bound
/// of what a pair takes. `bound` is that of the point. Nothing
/// unless both phases choose one mesh.
std::optional<ServingBound> estimateServing(const ProgramText &text,
                                            const Point &point,
                                            const ServingOptions &options,
                                            const ServingBound &bound);

/// A point of a sweep over programs that serve.
struct ServingRow {
  Point point;
  ServingOutcome outcome;
  /// Set where the point is not planned, since it cannot be the answer.
  std::optional<ServingBound> bound = {};
  /// Set where the point is not planned, since it is unlikely to be the answer.
  std::optional<ServingBound> estimate = {};
};

/// Rows that no other one beats in time per token and USD (without prices,
/// chip-seconds) of a request, the fastest first; and the cheapest of those
/// that meet the targets.
struct ServingFrontier {
  std::vector<size_t> rows;
  std::optional<size_t> chosen;
};
ServingFrontier findServingFrontier(llvm::ArrayRef<ServingRow> rows,
                                    const ServingTargets &targets);

/// Latency against throughput and price, a line for each point.
void printServingTable(llvm::raw_ostream &os, llvm::StringRef title,
                       llvm::ArrayRef<std::string> names,
                       llvm::ArrayRef<ServingRow> rows,
                       const ServingFrontier &frontier,
                       const ServingTargets &targets, bool colour);
void printServingCsv(llvm::raw_ostream &os, llvm::ArrayRef<std::string> names,
                     llvm::ArrayRef<ServingRow> rows,
                     const ServingFrontier &frontier);
/// Schema shardc.sweep/1, with `serving` in place of `report`.
void printServingSweepJson(llvm::raw_ostream &os,
                           llvm::ArrayRef<ServingRow> rows,
                           const ServingFrontier &frontier,
                           const ServingTargets &targets);

} // namespace shardc

#endif // SHARDC_QUESTIONS_SERVING_H
