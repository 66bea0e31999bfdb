//===- WaysOut.h - What would make a program fit in memory ----*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_WAYSOUT_H
#define SHARDC_QUESTIONS_WAYSOUT_H

#include "shardc/Frontend/Frontend.h"
#include "shardc/Optimizer/Options.h"
#include "shardc/Questions/TrialRunner.h"

namespace shardc {

/// Plans the program in the main buffer of `sourceMgr` again with small changes
/// under which it might fit: the least limit, annotations taken back, padding,
/// smaller inputs, more devices. `report` is of its plan with `overrides` and
/// `options`, which does not fit. By `upper` time, and no more plans than a
/// program of that size takes about two seconds for. What takes least to do
/// comes first, what fits before what does not.
std::vector<Report::WayOut> findWaysOut(const llvm::SourceMgr &sourceMgr,
                                        const Overrides &overrides,
                                        const PlanOptions &options,
                                        const Report &report,
                                        const TrialOptions &how);

} // namespace shardc

#endif // SHARDC_QUESTIONS_WAYSOUT_H
