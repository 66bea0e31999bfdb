//===- Workers.h - Points, planned on several threads ---------*- C++ -*-===//
//
// Questions about many plans: points, the outcome of planning one, and the
// threads that plan them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_WORKERS_H
#define SHARDC_QUESTIONS_WORKERS_H

#include "shardc/Frontend/ProgramText.h"
#include "shardc/Questions/Variant.h"
#include "shardc/Report/Report.h"
#include <functional>

namespace shardc {

/// The settings of a point, in the order of the question.
using Point = std::vector<Setting>;

/// The outcome of planning a point.
struct Outcome {
  /// Nothing if the point is not legal.
  std::optional<Report> report;
  /// Why the point is not legal or does not fit in memory, and the place in the
  /// program (`ffn.shd:7:8`); empty if neither.
  std::string error, loc;
  /// Layouts of the plan at the places that the variant watches.
  std::vector<Layout> layouts;
};

/// Plans points, on one thread.
class PointPlanner {
public:
  virtual ~PointPlanner() = default;
  virtual Outcome plan(const Point &point) = 0;
  /// The same of a variant of the program as it is written.
  virtual Outcome plan(const Variant &variant) = 0;
  /// True if the program can be imported at the point: all that makes a point
  /// illegal but what planning finds.
  virtual bool isLegal(const Point &point) = 0;
};

/// Threads that each have a planner, and a line on the terminal that tells how
/// far they are.
class Workers {
public:
  using MakePlanner = std::function<std::unique_ptr<PointPlanner>()>;

  /// `showProgress`: on standard error, once it takes long.
  Workers(MakePlanner makePlanner, unsigned jobs, bool showProgress);
  ~Workers();

  /// Calls `work` for 0, 1, ... `count` - 1, on any thread and in any order.
  void run(size_t count, llvm::function_ref<void(PointPlanner &, size_t)> work);

private:
  class Progress;
  PointPlanner &planner(unsigned worker);

  MakePlanner makePlanner;
  /// One a thread, made when first needed.
  std::vector<std::unique_ptr<PointPlanner>> planners;
  std::unique_ptr<Progress> progress;
};

} // namespace shardc

#endif // SHARDC_QUESTIONS_WORKERS_H
