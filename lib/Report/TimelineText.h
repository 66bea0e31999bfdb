//===- TimelineText.h - A step's timeline for people -----------*- C++ -*-===//

#ifndef SHARDC_LIB_REPORT_TIMELINETEXT_H
#define SHARDC_LIB_REPORT_TIMELINETEXT_H

#include "shardc/Report/Report.h"

namespace shardc {

/// Prints what each stream does when, section by section; nothing if the report
/// has no timeline.
void printTimeline(llvm::raw_ostream &os, const Report &report, bool colour);

/// Prints a chart of the stages over time; nothing if the report has none.
void printStageTimeline(llvm::raw_ostream &os, const Report &report,
                        bool colour);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_TIMELINETEXT_H
