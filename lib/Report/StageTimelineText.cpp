//===- StageTimelineText.cpp - A pipeline's stages over time --------------===//
//
// A chart with a row for each stage, as papers draw schedules: the items that
// it runs, idle time, and messages that it waits for. Where items of the whole
// step are too narrow for their names, its beginning and its end follow on a
// wider scale.
//
//===----------------------------------------------------------------------===//

#include "TimelineText.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace shardc;

namespace {

using Stages = Report::Stages;

/// Something that a stage does, or a message to it, in picoseconds.
struct Bar {
  Picoseconds start = 0, end = 0;
  std::string label;
  char fill = ' ';
};

/// Columns that hold the name of most items.
constexpr size_t kNameWidth = 4;

class StageChart {
public:
  StageChart(llvm::raw_ostream &os, const Stages &stages, bool colour);

  void print();

private:
  void printWindow(llvm::StringRef name, Picoseconds from, Picoseconds to);
  std::string row(unsigned stage, Picoseconds from, Picoseconds to) const;
  double busyShare(unsigned stage, Picoseconds from, Picoseconds to) const;
  Picoseconds meanItem() const;
  size_t numberWidth() const {
    return std::to_string(stages.stages.size() - 1).size();
  }
  size_t width() const {
    return kReportWidth - kIndent - kStage.size() - numberWidth() - 2 -
           kShareWidth;
  }

  static constexpr llvm::StringLiteral kStage = "stage ";
  /// Before each line, and for ` 100.0 % busy`.
  static constexpr size_t kIndent = 4, kShareWidth = 14;

  llvm::raw_ostream &os;
  const Stages &stages;
  const bool colour;
  /// By stage, in the order of their starts.
  std::vector<std::vector<Bar>> items, arriving;
  Picoseconds end = 0;
};

/// `F3`, in the second chunk `F3b`.
std::string labelOf(const Stages::Event &event, bool hasChunks) {
  std::string label = event.kind == "BW" ? "B" : event.kind;
  label += std::to_string(event.microbatch);
  if (hasChunks)
    label += char('a' + event.chunk % 26);
  return label;
}

char fillOf(llvm::StringRef kind) {
  return kind == "F" ? '>' : kind == "W" ? '~' : '<';
}

StageChart::StageChart(llvm::raw_ostream &os, const Stages &stages, bool colour)
    : os(os), stages(stages), colour(colour), items(stages.stages.size()),
      arriving(stages.stages.size()) {
  bool hasChunks = stages.stages.front().layers.size() > 1;
  for (const Stages::Event &event : stages.events)
    items[event.stage].push_back({event.start, event.end,
                                  labelOf(event, hasChunks),
                                  fillOf(event.kind)});
  for (auto [number, stage] : llvm::enumerate(stages.stages))
    if (stage.updateEnd > stage.updateStart)
      items[number].push_back({stage.updateStart, stage.updateEnd, "U", '='});
  for (const Stages::Transfer &transfer : stages.transfers)
    arriving[transfer.to].push_back({transfer.start, transfer.end, "", ':'});
  for (std::vector<Bar> &bars : items)
    if (!bars.empty())
      end = std::max(end, bars.back().end);
}

/// How much of a span bars take; they are sorted and do not overlap.
double taken(llvm::ArrayRef<Bar> bars, double from, double to) {
  double sum = 0;
  for (const Bar &bar : bars)
    sum += std::max(0.0, std::min(double(bar.end), to) -
                             std::max(double(bar.start), from));
  return sum;
}

double StageChart::busyShare(unsigned stage, Picoseconds from,
                             Picoseconds to) const {
  return taken(items[stage], double(from), double(to)) / double(to - from);
}

/// Each item takes the columns of which it has the middle, its name first if
/// that fits. An idle column is part of a bubble, or waits for a message that
/// is on its way.
std::string StageChart::row(unsigned stage, Picoseconds from,
                            Picoseconds to) const {
  double column = double(to - from) / double(width());
  std::string text(width(), '.');
  auto columnOf = [&](Picoseconds time) {
    double at = (double(time) - double(from)) / column;
    return size_t(std::clamp(at + 0.5, 0.0, double(width())));
  };
  for (const Bar &bar : arriving[stage])
    for (size_t at = columnOf(bar.start); at < columnOf(bar.end); ++at)
      text[at] = bar.fill;
  for (const Bar &bar : items[stage]) {
    size_t first = columnOf(bar.start), last = columnOf(bar.end);
    std::fill(text.begin() + first, text.begin() + last, bar.fill);
    bool isCut = bar.start < from;
    if (!isCut && bar.label.size() <= last - first)
      llvm::copy(bar.label, text.begin() + first);
  }
  return text;
}

void StageChart::printWindow(llvm::StringRef name, Picoseconds from,
                             Picoseconds to) {
  auto seconds = [](double time) { return formatTime(time / 1e12); };
  os.indent(2);
  paint(os,
        (name + ": from " + seconds(double(from)) + " for " +
         seconds(double(to - from)) + ", a column is " +
         seconds(double(to - from) / double(width())))
            .str(),
        Style::Bold, colour);
  os << '\n';
  for (unsigned stage = 0; stage < stages.stages.size(); ++stage)
    os.indent(kIndent)
        << kStage << llvm::right_justify(std::to_string(stage), numberWidth())
        << "  " << row(stage, from, to)
        << llvm::right_justify(formatPercent(busyShare(stage, from, to)),
                               kShareWidth - 5)
        << " busy\n";
}

Picoseconds StageChart::meanItem() const {
  double sum = 0;
  size_t count = 0;
  for (const std::vector<Bar> &bars : items)
    for (const Bar &bar : bars) {
      sum += double(bar.end - bar.start);
      ++count;
    }
  return count ? Picoseconds(sum / double(count)) : 0;
}

void StageChart::print() {
  if (end <= 0)
    return;
  os << '\n';
  paint(os, "Timeline of the stages", Style::Bold, colour);
  os << '\n';
  os.indent(2);
  paint(os,
        "F> forward, B< backward, W~ gradients of weights apart from it, U= "
        "update, each with its microbatch; .: idle;",
        Style::Dim, colour);
  os << '\n';
  os.indent(2);
  paint(os,
        ":: idle while a message to the stage is on its way; a second letter: "
        "the chunk of layers",
        Style::Dim, colour);
  os << '\n';
  printWindow("the step", 0, end);
  Picoseconds window = meanItem() * Picoseconds(width() / kNameWidth);
  bool isMostOfIt = 3 * double(window) > 2 * double(end);
  if (isMostOfIt || window <= 0)
    return;
  printWindow("its beginning", 0, window);
  printWindow("its end", end - window, end);
}

} // namespace

void shardc::printStageTimeline(llvm::raw_ostream &os, const Report &report,
                                bool colour) {
  if (report.stages)
    StageChart(os, *report.stages, colour).print();
}
