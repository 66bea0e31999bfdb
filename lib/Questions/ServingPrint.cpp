//===- ServingPrint.cpp - Reports of serving ------------------------------===//

#include "PlanFiguresPrint.h"
#include "SweepCells.h"
#include "shardc/Questions/Serving.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <fmt/format.h>

using namespace shardc;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// In words
//===----------------------------------------------------------------------===//

/// `cache over K 8 and B 4`: the indices of the largest state that are split,
/// and in how many parts.
static std::string cacheText(const Report &report) {
  const ReportTensor *largest = nullptr;
  for (const ReportTensor &tensor : report.tensors)
    if (tensor.kind == "state" &&
        (!largest || tensor.globalBytes > largest->globalBytes))
      largest = &tensor;
  if (!largest)
    return "";
  std::vector<std::string> parts;
  for (const ReportTensor::Dim &dim : largest->dims) {
    int64_t size = 1;
    for (const std::string &name : dim.axes)
      for (const Report::Axis &axis : report.mesh)
        if (axis.name == name)
          size *= axis.size;
    if (size > 1)
      parts.push_back(dim.index + " " + std::to_string(size));
  }
  if (parts.empty())
    return "cache on every device";
  return "cache over " + llvm::join(parts, " and ");
}

static std::string wordsOf(const Report &report) {
  std::string cache = cacheText(report);
  if (report.words.empty() || cache.empty())
    return report.words + cache;
  return report.words + "; " + cache;
}

/// Of sweeps and of the report, on one line.
static std::string wordsOf(const ServingPlan &plan) {
  return "decode: " + wordsOf(*plan.decode.report) +
         "; prefill: " + wordsOf(*plan.prefill.report) +
         (plan.serving.separate ? "; transfer " : "; insertion ") +
         formatTime(plan.insertion);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// Facts in two columns.
class FactPrinter {
public:
  FactPrinter(llvm::raw_ostream &os, bool colour) : os(os), colour(colour) {}

  void heading(StringRef text) {
    os << '\n';
    paint(os, text, Style::Bold, colour);
    os << '\n';
  }
  void fact(StringRef name, StringRef text) {
    os.indent(2) << llvm::left_justify(name, kName);
    os << truncate(text, kReportWidth - 2 - kName) << '\n';
  }
  void wrapped(StringRef name, StringRef text) {
    constexpr size_t kWidth = kReportWidth - 2 - kName;
    while (text.size() > kWidth) {
      size_t end = text.rfind(' ', kWidth);
      if (end == StringRef::npos)
        break;
      fact(name, text.take_front(end));
      text = text.drop_front(end + 1);
      name = "";
    }
    fact(name, text);
  }

private:
  static constexpr size_t kName = 18;
  llvm::raw_ostream &os;
  bool colour;
};
} // namespace

static std::string usdText(std::optional<double> usd) {
  return usd ? formatUsd(*usd) : "no price of the machine";
}

static std::string hardwareText(const Report &report) {
  std::string shape;
  for (int64_t size : report.hardware.shape)
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  if (!shape.empty())
    shape = "[" + shape + "]";
  return report.hardware.name + shape + ", " +
         plural(report.hardware.chips, "chip");
}

static std::string meshText(const Report &report) {
  std::string text;
  for (const Report::Axis &axis : report.mesh)
    text += (text.empty() ? "" : ", ") + axis.name + "=" +
            std::to_string(axis.size);
  return "[" + text + "]";
}

static std::string meshText(const ServingPlan &plan) {
  std::string decode = meshText(*plan.decode.report);
  return plan.serving.separate ? "decode " + decode + ", prefill " +
                                     meshText(*plan.prefill.report)
                               : decode;
}

static std::string requestText(const shd::Serving &serving) {
  return plural(serving.sequences, "sequence") + " at once, each with " +
         formatDigits(serving.prompt) + " prompt and " +
         formatDigits(serving.generate) + " generated tokens in a cache of " +
         formatDigits(serving.capacity) + " positions; " +
         plural(serving.promptBatch, "prompt") + " per prefill";
}

static std::string boundText(const ServingPlan &plan) {
  std::string text = plural(plan.planned, "plan") + " made";
  if (plan.isCutShort)
    text += ", incomplete: the search was ended early";
  std::optional<double> gap = plan.gap();
  if (!gap)
    return text + "; no lower bound is proven";
  if (*gap < 1e-9)
    return text + "; proven the cheapest pair";
  return text + "; at most " + formatPercent(*gap) +
         " dearer than the best pair, by the lower bounds of each phase alone";
}

static std::string stepShares(const ServingPlan &plan) {
  double traffic = plan.decode.report->traffic.hbm;
  if (traffic <= 0)
    return "";
  return formatPercent(plan.stateBytesRead / traffic) + " KV cache, " +
         formatPercent(plan.weightBytesRead / traffic) +
         " weights of the bytes that a device moves in a decode step";
}

static std::string memoryText(const ServingPlan &plan) {
  auto peakOf = [](const Outcome &phase) {
    return formatBytes(double(phase.report->memory.peak));
  };
  std::string text = formatBytes(double(plan.peakMemory())) +
                     " of a device at most: " + peakOf(plan.decode) +
                     " in decode, " + peakOf(plan.prefill) + " in prefill";
  if (plan.besidePrefill > 0)
    text += " beside " + formatBytes(double(plan.besidePrefill)) +
            " of decode's caches";
  return text;
}

static void printFigures(FactPrinter &out, const ServingPlan &plan) {
  const shd::Serving &serving = plan.serving;
  out.fact("time to first",
           formatTime(plan.firstToken()) + " (TTFT): prefill of " +
               plural(serving.promptBatch, "prompt") + ", without queues");
  out.fact("time per token",
           formatTime(plan.token()) + " (TPOT, ITL) on average, " +
               formatTime(plan.tokenLast) + " at the last token");
  out.fact("throughput", formatScaled(plan.tokensPerSecond()) + " tokens/s" +
                             ", " +
                             formatScaled(plan.tokensPerSecondPerChip()) +
                             " tokens/s" + " per chip");
  out.fact("with prefill",
           formatScaled(plan.tokensPerSecondWithPrefill()) + " tokens/s" +
               ", " + formatScaled(plan.requestsPerSecond()) + " requests/s");
  if (serving.separate)
    out.fact("transfer", formatTime(plan.insertion) +
                             " for the caches of a prefill between the "
                             "machines, beside other work");
  else
    out.fact("insertion", formatTime(plan.insertion) +
                              " to move the caches of a prefill into those of "
                              "decode");
  out.fact("servers", fmt::format("{:.3g} prefill servers per decode server "
                                  "keep up with it",
                                  plan.prefillServers()));
  out.fact("KV cache", formatBytes(plan.stateBytesPerToken) + " per token, " +
                           formatBytes(plan.stateBytesPerSequence) +
                           " per sequence; " +
                           plural(plan.sequencesThatFit, "sequence") +
                           " would fit beside the weights as placed");
  out.wrapped("memory", memoryText(plan));
  if (std::string shares = stepShares(plan); !shares.empty())
    out.fact("reads", shares);
  out.fact("price", usdText(plan.usdPerMillionPromptTokens()) +
                        " per million prompt tokens, " +
                        usdText(plan.usdPerMillionOutputTokens()) +
                        " per million output tokens");
  out.fact("request",
           usdText(plan.usdOfRequest()) + ", " +
               fmt::format("{:.3g} chip-seconds", plan.chipSecondsOfRequest()));
}

void shardc::printServing(llvm::raw_ostream &os, const ServingPlan &plan,
                          bool colour) {
  const Report &decode = *plan.decode.report;
  FactPrinter out(os, colour);
  paint(os, "Serving " + decode.file, Style::Bold, colour);
  os << "\n\n";
  if (plan.serving.separate) {
    const Report &prefill = *plan.prefill.report;
    out.fact("decode machine",
             hardwareText(decode) + ", mesh " + meshText(decode));
    out.fact("prefill machine",
             hardwareText(prefill) + ", mesh " + meshText(prefill));
  } else {
    out.fact("machine", hardwareText(decode) + ", mesh " + meshText(decode));
  }
  out.wrapped("requests", requestText(plan.serving));
  out.wrapped("decode", wordsOf(decode));
  out.wrapped("prefill", wordsOf(*plan.prefill.report));
  printFigures(out, plan);
  out.wrapped("search", boundText(plan));
  os << '\n';
  paint(os, "Decode: one token of each sequence", Style::Bold, colour);
  os << "\n\n";
  printText(os, decode, colour);
  os << '\n';
  paint(os, "Prefill: the prompts", Style::Bold, colour);
  os << "\n\n";
  printText(os, *plan.prefill.report, colour);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static Json reportJson(const Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printJson(os, report);
  return Json::parse(text);
}

/// The figures, without the reports of the plans.
static Json figuresJson(const ServingPlan &plan) {
  return {
      {"words", wordsOf(plan)},
      {"first_token_s", plan.firstToken()},
      {"token_s", plan.token()},
      {"token_s_last", plan.tokenLast},
      {"insertion_s", plan.insertion},
      {"tokens_per_s", plan.tokensPerSecond()},
      {"tokens_per_s_with_prefill", plan.tokensPerSecondWithPrefill()},
      {"tokens_per_s_per_chip", plan.tokensPerSecondPerChip()},
      {"requests_per_s", plan.requestsPerSecond()},
      {"state_bytes_per_token", plan.stateBytesPerToken},
      {"state_bytes_per_sequence", plan.stateBytesPerSequence},
      {"sequences_that_fit", plan.sequencesThatFit},
      {"prefill_servers_per_decode_server", plan.prefillServers()},
      {"usd_per_million_prompt_tokens",
       orNull(plan.usdPerMillionPromptTokens())},
      {"usd_per_million_output_tokens",
       orNull(plan.usdPerMillionOutputTokens())},
      {"usd_per_request", orNull(plan.usdOfRequest())},
      {"chip_seconds_per_request", plan.chipSecondsOfRequest()},
      {"chip_seconds_bound", orNull(plan.boundOfRequest)},
      {"gap", orNull(plan.gap())},
      {"state_share_of_traffic",
       plan.stateBytesRead / plan.decode.report->traffic.hbm},
      {"weight_share_of_traffic",
       plan.weightBytesRead / plan.decode.report->traffic.hbm},
      {"memory_bytes", plan.peakMemory()},
      {"fits", plan.fits()},
      {"plans", plan.planned},
      {"complete", !plan.isCutShort},
      {"search_s", orNull(plan.searchSeconds)},
  };
}

static Json servingJson(const ServingPlan &plan) {
  Json object = figuresJson(plan);
  object["prefill"] = reportJson(*plan.prefill.report);
  object["decode"] = reportJson(*plan.decode.report);
  return object;
}

void shardc::printServingJson(llvm::raw_ostream &os, const ServingPlan &plan) {
  Json serving = servingJson(plan);
  Json object;
  object["schema"] = "shardc.cost/1";
  object["file"] = plan.decode.report->file;
  object["hardware"] = serving["decode"]["hardware"];
  object["mesh"] = serving["decode"]["mesh"];
  object["words"] = serving["words"];
  object["serving"] = std::move(serving);
  printJson(os, object);
}

//===----------------------------------------------------------------------===//
// Sweeps
//===----------------------------------------------------------------------===//

ServingFrontier shardc::findServingFrontier(llvm::ArrayRef<ServingRow> rows,
                                            const ServingTargets &targets) {
  ServingFrontier frontier;
  // Costs in USD and in chip-seconds do not compare.
  bool hasPrice = llvm::any_of(rows, [](const ServingRow &row) {
    return row.outcome.plan && row.outcome.plan->usdOfRequest();
  });
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.size(); ++i)
    if (const auto &plan = rows[i].outcome.plan;
        plan && plan->fits() && plan->usdOfRequest().has_value() == hasPrice)
      order.push_back(i);
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    const ServingPlan &x = *rows[a].outcome.plan, &y = *rows[b].outcome.plan;
    return std::pair(x.token(), x.cost()) < std::pair(y.token(), y.cost());
  });
  for (size_t i : order) {
    const ServingPlan &plan = *rows[i].outcome.plan;
    if (frontier.rows.empty() ||
        plan.cost() < rows[frontier.rows.back()].outcome.plan->cost())
      frontier.rows.push_back(i);
    if (plan.meets(targets) &&
        (!frontier.chosen ||
         plan.cost() < rows[*frontier.chosen].outcome.plan->cost()))
      frontier.chosen = i;
  }
  return frontier;
}

static std::string targetText(const ServingTargets &targets) {
  std::vector<std::string> parts;
  if (targets.tokenSeconds)
    parts.push_back(formatTime(*targets.tokenSeconds) + " per token");
  if (targets.firstSeconds)
    parts.push_back(formatTime(*targets.firstSeconds) + " to the first");
  return llvm::join(parts, ", ");
}

/// Why a point is not planned: figures that it has at least, or about.
static std::string boundText(const ServingBound &bound,
                             const ServingTargets &targets,
                             const std::string &word) {
  if (!bound.fits)
    return "weights and caches take more than all chips have";
  if (!targets.any())
    return "not planned";
  if (targets.tokenSeconds && bound.tokenSeconds > *targets.tokenSeconds)
    return word + formatTime(bound.tokenSeconds) + " per token";
  if (targets.firstSeconds && bound.firstSeconds > *targets.firstSeconds)
    return word + formatTime(bound.firstSeconds) + " to the first token";
  if (!bound.hasPrice)
    return "not planned: the machine has no price";
  return word + formatUsd(bound.cost()) + " per request";
}

static std::string shortUsd(std::optional<double> usd) {
  return usd ? fmt::format("{:.3g}", *usd) : "-";
}

static std::string reasonText(const ServingRow &row,
                              const ServingTargets &targets) {
  if (row.estimate)
    return boundText(*row.estimate, targets, "about ");
  return row.bound ? boundText(*row.bound, targets, "at least ")
                   : "not legal: " + row.outcome.error;
}

/// `*` on the frontier, and the chosen point.
static std::string markOf(size_t row, const ServingFrontier &frontier) {
  if (frontier.chosen == row)
    return "chosen";
  return llvm::is_contained(frontier.rows, row) ? "*" : "";
}

void shardc::printServingTable(llvm::raw_ostream &os, StringRef title,
                               llvm::ArrayRef<std::string> names,
                               llvm::ArrayRef<ServingRow> rows,
                               const ServingFrontier &frontier,
                               const ServingTargets &targets, bool colour) {
  using Column = Table::Column;
  std::vector<Column> columns;
  std::vector<std::string> heading;
  for (const std::string &name : names) {
    heading.push_back(name);
    columns.push_back(
        {name == "hardware" ? Column::Left : Column::Right, 24, true});
  }
  for (const char *name : {"TTFT", "TPOT", "tokens/s", "per chip",
                           "with prefill", "USD/M in", "USD/M out", "memory"}) {
    heading.push_back(name);
    columns.push_back({Column::Right});
  }
  for (const char *name : {"", "mesh"}) {
    heading.push_back(name);
    columns.push_back({Column::Left, kReportWidth, name[0] != 0});
  }
  Table table(std::move(columns), std::move(heading));
  for (auto [i, row] : llvm::enumerate(rows)) {
    std::vector<Cell> cells;
    for (const Setting &setting : row.point)
      cells.emplace_back(setting.valueText());
    if (!row.outcome.plan) {
      cells.emplace_back(reasonText(row, targets),
                         row.bound ? Style::Dim : Style::Yellow,
                         /*runsOn=*/true);
      table.addRow(std::move(cells));
      continue;
    }
    const ServingPlan &plan = *row.outcome.plan;
    cells.emplace_back(formatTime(plan.firstToken()));
    cells.emplace_back(formatTime(plan.token()));
    cells.emplace_back(formatScaled(plan.tokensPerSecond()));
    cells.emplace_back(formatScaled(plan.tokensPerSecondPerChip()));
    cells.emplace_back(formatScaled(plan.tokensPerSecondWithPrefill()));
    cells.emplace_back(shortUsd(plan.usdPerMillionPromptTokens()));
    cells.emplace_back(shortUsd(plan.usdPerMillionOutputTokens()));
    cells.emplace_back(formatBytes(double(plan.peakMemory())));
    cells.emplace_back(plan.fits() ? markOf(i, frontier) : "does not fit",
                       plan.fits() ? Style::Bold : Style::Red);
    cells.emplace_back(meshText(plan));
    table.addRow(std::move(cells));
  }
  paint(os, truncate(title, kReportWidth), Style::Bold, colour);
  os << "\n\n";
  table.print(os, colour);
  os << '\n';
  std::string text = "* no point is faster per token and cheaper per request";
  if (targets.any())
    text += frontier.chosen
                ? "; chosen: the cheapest within " + targetText(targets)
                : "; no point that fits keeps " + targetText(targets);
  else if (frontier.chosen)
    text += "; chosen: the cheapest";
  printWrapped(os, text, 2);
}

static Json boundJson(const ServingBound &bound) {
  return {{"first_token_s", bound.firstSeconds},
          {"token_s", bound.tokenSeconds},
          {bound.hasPrice ? "usd_per_request" : "chip_seconds_per_request",
           bound.cost()}};
}

void shardc::printServingSweepJson(llvm::raw_ostream &os,
                                   llvm::ArrayRef<ServingRow> rows,
                                   const ServingFrontier &frontier,
                                   const ServingTargets &targets) {
  Json points = Json::array();
  for (const ServingRow &row : rows) {
    Json point = {{"set", setOf(row.point)}};
    point["serving"] =
        row.outcome.plan ? servingJson(*row.outcome.plan) : Json(nullptr);
    if (!row.outcome.error.empty()) {
      point["error"] = row.outcome.error;
      point["loc"] = row.outcome.loc;
    }
    if (const auto &bound = row.bound) {
      point["at_least"] = boundJson(*bound);
      point["at_least"]["fits"] = bound->fits;
    }
    if (const auto &estimate = row.estimate)
      point["about"] = boundJson(*estimate);
    points.push_back(std::move(point));
  }
  Json object;
  object["schema"] = "shardc.sweep/1";
  object["points"] = std::move(points);
  object["frontier"] = {{"target_time_s", orNull(targets.tokenSeconds)},
                        {"target_first_s", orNull(targets.firstSeconds)},
                        {"points", frontier.rows},
                        {"chosen", orNull(frontier.chosen)}};
  printJson(os, object);
}

void shardc::printServingCsv(llvm::raw_ostream &os,
                             llvm::ArrayRef<std::string> names,
                             llvm::ArrayRef<ServingRow> rows,
                             const ServingFrontier &frontier) {
  static constexpr const char *kColumns[] = {"first_token_s",
                                             "token_s",
                                             "token_s_last",
                                             "insertion_s",
                                             "tokens_per_s",
                                             "tokens_per_s_with_prefill",
                                             "tokens_per_s_per_chip",
                                             "requests_per_s",
                                             "sequences_that_fit",
                                             "usd_per_million_prompt_tokens",
                                             "usd_per_million_output_tokens",
                                             "usd_per_request",
                                             "chip_seconds_per_request",
                                             "gap",
                                             "memory_bytes",
                                             "fits"};
  for (const std::string &name : names)
    os << csvCell(name) << ',';
  for (const char *column : kColumns)
    os << column << ',';
  os << "mesh,frontier,chosen,error\n";
  for (auto [i, row] : llvm::enumerate(rows)) {
    for (const Setting &setting : row.point)
      os << csvCell(setting.valueText()) << ',';
    Json figures =
        row.outcome.plan ? figuresJson(*row.outcome.plan) : Json::object();
    for (const char *column : kColumns) {
      if (figures.contains(column) && !figures[column].is_null())
        os << figures[column].dump();
      os << ',';
    }
    if (row.outcome.plan)
      os << csvCell(meshText(*row.outcome.plan));
    os << ',' << (llvm::is_contained(frontier.rows, i) ? "true," : "false,")
       << (frontier.chosen == i ? "true," : "false,")
       << csvCell(row.outcome.error) << '\n';
  }
}
