//===- Page.cpp - The report as one page ----------------------------------===//
//
// Page.html, with the report in it as data and with d3, which draws its charts.
//
//===----------------------------------------------------------------------===//

#include "ReadReport.h"
#include "shardc/Pictures/Pictures.h"

using namespace llvm;
using namespace shardc;

static constexpr char kTemplate[] =
#include "Page.inc"
    ;

static constexpr char kD3[] =
#include "D3.inc"
    ;

/// In the template, where the report goes, and then d3.
static constexpr StringLiteral kReportPlace = "SHARDC_REPORT";
static constexpr StringLiteral kD3Place = "SHARDC_D3";

Error shardc::printPage(raw_ostream &os, StringRef text) {
  Expected<json::Object> report = readReport(text);
  if (!report)
    return report.takeError();
  auto [before, after] = StringRef(kTemplate).split(kReportPlace);
  os << before;
  // Inside strings only, so JSON reads the same: no text can end the element.
  for (char c : text.trim())
    if (c == '<')
      os << "\\u003c";
    else
      os << c;
  auto [between, end] = after.split(kD3Place);
  os << between << kD3 << end;
  return Error::success();
}
