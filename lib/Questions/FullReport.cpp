//===- FullReport.cpp - A plan's report with what others promise ----------===//

#include "shardc/Questions/FullReport.h"
#include "shardc/Questions/FasterBinding.h"
#include "shardc/Questions/WaysOut.h"
#include "shardc/Report/Suspects.h"

using namespace mlir;
using namespace shardc;

std::optional<Report> shardc::buildFullReport(Compilation &compilation,
                                              const ReportOptions &options,
                                              std::optional<ReportedText> text,
                                              unsigned jobs) {
  OwningOpRef<ModuleOp> planned;
  if (compilation.stage() < Compilation::Stage::Explicit) {
    if (failed(compilation.plan()))
      return std::nullopt;
    planned = compilation.clone();
  }
  std::optional<Report> report = buildReport(compilation, options);
  if (!report)
    return std::nullopt;
  if (planned)
    report->fasterBinding = findFasterBinding(*planned, compilation, *report);
  report->notes =
      findNotes(compilation.program(), *compilation.planning(), *report);
  if (report->shortfall && text) {
    const CompileOptions &how = compilation.options();
    std::optional<double> seconds = how.plan.timeLimitSeconds;
    if (seconds)
      *seconds = std::max(0.0, *seconds - report->plan.search.value_or(0));
    report->shortfall->waysOut =
        findWaysOut(text->sourceMgr, text->overrides, how.plan, *report,
                    {jobs, /*showProgress=*/false, seconds, how.interrupted});
  }
  return report;
}
