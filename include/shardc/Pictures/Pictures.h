//===- Pictures.h - What is drawn from the JSON report --------*- C++ -*-===//
//
// A page, a trace and a framework's configuration, each from the text of a JSON
// report alone (docs/CommandLine.md#the-json-report), so that recorded reports
// give the same bytes: docs/Pictures.md and docs/Frameworks.md.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PICTURES_PICTURES_H
#define SHARDC_PICTURES_PICTURES_H

#include "shardc/Frontend/Framework.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

/// Whether a text is a JSON object whose `schema` is one of shardc's.
bool isJsonReport(llvm::StringRef text);

/// `--emit-html`: one page that draws a report of any schema. An error if the
/// text is no report.
llvm::Error printPage(llvm::raw_ostream &os, llvm::StringRef report);

/// `--emit-trace`: Chrome trace events of the timeline of one plan, in
/// microseconds. An error if the text is no report with a timeline.
llvm::Error printTrace(llvm::raw_ostream &os, llvm::StringRef report);

/// `--emit-config`: the options with which a framework runs the plan of a
/// training step, and in comments what they do not express. With the report of
/// the `nearest` plan that they do express, the options are those of that one,
/// and comments compare both. An error if a text is no report of one.
llvm::Error printFrameworkConfig(llvm::raw_ostream &os, Framework framework,
                                 llvm::StringRef report,
                                 llvm::StringRef nearest = "");

/// True if the options express all of the plan.
llvm::Expected<bool> expressesPlan(Framework framework, llvm::StringRef report);

} // namespace shardc

#endif // SHARDC_PICTURES_PICTURES_H
