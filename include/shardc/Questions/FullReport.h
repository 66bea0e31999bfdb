//===- FullReport.h - A plan's report with what others promise -*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_FULLREPORT_H
#define SHARDC_QUESTIONS_FULLREPORT_H

#include "shardc/Pipelines/Compilation.h"
#include "shardc/Report/Report.h"

namespace shardc {

/// The text that a program was imported from.
struct ReportedText {
  const llvm::SourceMgr &sourceMgr;
  const Overrides &overrides;
};

/// `--emit-cost` and `--emit-json`: the report of a plan, with what other plans
/// promise: a faster binding of the mesh, what the plan does in vain, and,
/// where it does not fit in memory, changes with which it would. The last needs
/// the `text` and is tried on `jobs` threads; a faster binding needs a plan
/// that is not yet explicit. Nothing after an error.
std::optional<Report> buildFullReport(Compilation &compilation,
                                      const ReportOptions &options,
                                      std::optional<ReportedText> text,
                                      unsigned jobs);

} // namespace shardc

#endif // SHARDC_QUESTIONS_FULLREPORT_H
