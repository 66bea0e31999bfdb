//===- Page.cpp - The report as one page ----------------------------------===//
//
// Page.html, with the report in it as data: all else happens in the browser.
//
//===----------------------------------------------------------------------===//

#include "ReadReport.h"
#include "shardc/Pictures/Pictures.h"

using namespace llvm;
using namespace shardc;

static constexpr char kTemplate[] =
#include "Page.inc"
    ;

/// In the template, where the report goes.
static constexpr StringLiteral kPlace = "SHARDC_REPORT";

Error shardc::printPage(raw_ostream &os, StringRef text) {
  Expected<json::Object> report = readReport(text);
  if (!report)
    return report.takeError();
  auto [before, after] = StringRef(kTemplate).split(kPlace);
  os << before;
  // Inside strings only, so JSON reads the same: no text can end the element.
  for (char c : text.trim())
    if (c == '<')
      os << "\\u003c";
    else
      os << c;
  os << after;
  return Error::success();
}
