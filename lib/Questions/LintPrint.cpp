//===- LintPrint.cpp - Findings for people and programs -------------------===//

#include "PlanFiguresPrint.h"
#include "shardc/Questions/Lint.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include <fmt/format.h>

using namespace shardc;
using llvm::StringRef;

static std::string statusText(const Lint &lint) {
  const PlanFigures &plan = lint.plan;
  if (!plan.fits)
    return "no plan fits, so there is nothing to look at";
  if (plan.status == "fixed")
    return "fixed: nothing is searched";
  if (plan.status == "optimal")
    return "optimal: what it does is proven best, given what the program says";
  return plan.status;
}

static std::string fixText(const Lint &lint, const LintFix &fix) {
  std::string text = fix.change;
  if (!fix.loc.empty())
    text += " (" + fix.loc + ")";
  text += ": " + timeText(lint.value - fix.saves);
  if (fix.saves == 0)
    text += ", as long";
  else
    text += fmt::format(
        ", {} {} ({})", timeText(std::abs(fix.saves)),
        fix.saves > 0 ? "less" : "more",
        formatPercent(double(std::abs(fix.saves)) / double(lint.value)));
  if (!fix.gain.empty())
    text += ", " + fix.gain;
  return text + (fix.plan ? "" : "; priced again, not planned");
}

/// What nothing was tried for.
static void printNotes(llvm::raw_ostream &os, const Lint &lint, bool colour) {
  if (lint.notes.empty())
    return;
  os << '\n';
  paint(os, "Training step (read off the plan, nothing was tried)", Style::Bold,
        colour);
  os << '\n';
  for (const StepNote &note : lint.notes) {
    std::string text = "- " + note.text;
    if (note.cost > 0)
      text += ": " + timeText(note.cost);
    if (!note.loc.empty())
      text += " (" + note.loc + ")";
    printWrapped(os, text, 2);
  }
}

static void printFact(llvm::raw_ostream &os, StringRef name,
                      const std::string &text) {
  os << "  " << llvm::left_justify(name, 12) << text << '\n';
}

void shardc::printLint(llvm::raw_ostream &os, const Lint &lint, bool colour) {
  paint(os, truncate(lint.file + ": --lint", kReportWidth), Style::Bold,
        colour);
  os << '\n';
  printFact(os, "plan",
            timeText(lint.value) + " of " + lint.objective + " time, " +
                statusText(lint));
  if (!lint.plan.fits)
    return;
  std::string tried = plural(lint.suspects, "place") + " looked at, " +
                      plural(lint.tried, "change") +
                      " tried, each planned again";
  if (lint.untried > 0)
    tried += "; " + formatDigits(int64_t(lint.untried)) + " more were not";
  printFact(os, "lint", tried);
  if (lint.findings.empty()) {
    printFact(os, "findings",
              "none: nothing saves " + formatPercent(kLintThreshold) +
                  " of the step");
    return printNotes(os, lint, colour);
  }
  printFact(os, "findings",
            formatDigits(int64_t(lint.findings.size())) +
                "; each change is tried by itself, so savings do not add up");
  for (auto [number, finding] : llvm::enumerate(lint.findings)) {
    os << '\n';
    std::string text = fmt::format("{}. {}", number + 1, finding.text);
    if (finding.cost > 0)
      text += ": " + timeText(finding.cost);
    printWrapped(os, text + " (" + finding.loc + ")", 2);
    printWrapped(os, fixText(lint, finding.fix), 5);
  }
  printNotes(os, lint, colour);
}

void shardc::printLintJson(llvm::raw_ostream &os, const Lint &lint) {
  Json findings = Json::array();
  for (const LintFinding &finding : lint.findings) {
    const LintFix &fix = finding.fix;
    Json object;
    object["kind"] = finding.kind;
    object["what"] = finding.text;
    object["loc"] = finding.loc;
    object["cost_s"] = jsonSeconds(finding.cost);
    object["fix"] = {{"kind", fix.kind},
                     {"change", fix.change},
                     {"loc", textOrNull(fix.loc)},
                     {"tried", fix.plan ? "planned" : "priced"},
                     {"saves_s", jsonSeconds(fix.saves)},
                     {"gain", textOrNull(fix.gain)},
                     {"plan", toJson(fix.plan)}};
    findings.push_back(std::move(object));
  }
  Json notes = Json::array();
  for (const StepNote &note : lint.notes)
    notes.push_back({{"kind", note.kind},
                     {"what", note.text},
                     {"loc", textOrNull(note.loc)},
                     {"cost_s", jsonSeconds(note.cost)},
                     {"bytes", note.bytes}});
  Json object;
  object["schema"] = "shardc.lint/1";
  object["file"] = lint.file;
  object["objective"] = lint.objective;
  object["value_s"] = jsonSeconds(lint.value);
  object["plan"] = toJson(lint.plan);
  object["threshold"] = kLintThreshold;
  object["places"] = lint.suspects;
  object["tried"] = lint.tried;
  object["untried"] = lint.untried;
  object["complete"] = lint.complete;
  object["findings"] = std::move(findings);
  object["notes"] = std::move(notes);
  printJson(os, object);
}
