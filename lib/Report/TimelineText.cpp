//===- TimelineText.cpp - A step's timeline for people --------------------===//
//
// A chart of compute and each network for every section of the step, and under
// it exactly when each operation and collective in it starts and ends.
//
//===----------------------------------------------------------------------===//

#include "TimelineText.h"
#include "Collect.h"
#include "shardc/Report/Table.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace shardc;

namespace {

constexpr llvm::StringLiteral kGroupMarks =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr llvm::StringLiteral kCollectiveMarks = "abcdefghijklmnopqrstuvwxyz";

using Column = Table::Column;
using Event = Report::Section::Event;

class SectionPrinter {
public:
  SectionPrinter(llvm::raw_ostream &os, const Report &report,
                 const Report::Section &section, bool colour)
      : os(os), report(report), section(section), colour(colour) {
    assignMarks();
  }

  void print();

private:
  void assignMarks();
  void printHeading();
  void printChart();
  void printEvents();
  /// The events on the compute stream, or on a network.
  std::vector<const Event *> eventsOn(std::optional<unsigned> network) const;
  std::string row(llvm::ArrayRef<const Event *> events) const;
  double busyShare(llvm::ArrayRef<const Event *> events) const;
  size_t chartWidth() const {
    return kReportWidth - kIndent - nameWidth() - 2 - kShareWidth;
  }
  size_t nameWidth() const;
  double overlap(const Event &event, double from, double to) const {
    return std::max(0.0, std::min(double(event.end), to) -
                             std::max(double(event.start), from));
  }
  std::string sinceStart(Picoseconds time) const;

  /// Before each line, and for ` 100.0 % busy`.
  static constexpr size_t kIndent = 4, kShareWidth = 14;

  llvm::raw_ostream &os;
  const Report &report;
  const Report::Section &section;
  const bool colour;
  llvm::MapVector<unsigned, char> marks;
};

std::string seconds(Picoseconds time) {
  return formatTime(double(time) / 1e12);
}

/// Items in the order of their first start; `+` and `#` where marks run out.
void SectionPrinter::assignMarks() {
  size_t groups = 0, collectives = 0;
  for (const Event &event : section.events) {
    if (marks.contains(event.item))
      continue;
    bool isGroup = report.items[event.item].compute();
    size_t number = isGroup ? groups++ : collectives++;
    llvm::StringRef all = isGroup ? kGroupMarks : kCollectiveMarks;
    marks[event.item] =
        number < all.size() ? all[number] : (isGroup ? '#' : '+');
  }
}

size_t SectionPrinter::nameWidth() const {
  size_t width = llvm::StringRef("compute").size();
  for (const auto &[name, time] : report.time.physical)
    width = std::max(width, name.size());
  return width;
}

std::string SectionPrinter::sinceStart(Picoseconds time) const {
  Picoseconds since = time - section.start;
  return since < 0 ? "-" + seconds(-since) : seconds(since);
}

void SectionPrinter::printHeading() {
  std::string text = "outside repeats";
  if (section.repeat >= 0) {
    const Report::Repeat &repeat = report.repeats[section.repeat];
    text = "repeat " + repeat.index + " x " + formatDigits(repeat.count) +
           ", its iteration " + formatDigits(section.iteration + 1);
  }
  text += ": from " + seconds(section.start) + " for " +
          seconds(section.end - section.start) + ", a column is " +
          formatTime(double(section.end - section.start) / 1e12 /
                     double(chartWidth()));
  os.indent(2);
  paint(os, truncate(text, kReportWidth - 2), Style::Bold, colour);
  os << '\n';
}

std::vector<const Event *>
SectionPrinter::eventsOn(std::optional<unsigned> network) const {
  std::vector<const Event *> events;
  for (const Event &event : section.events) {
    const ReportCollective *moved = report.items[event.item].collective();
    if (network ? moved && llvm::is_contained(moved->cost.occupies, *network)
                : !moved)
      events.push_back(&event);
  }
  return events;
}

/// Events of one stream do not overlap, so one pass suffices.
std::string SectionPrinter::row(llvm::ArrayRef<const Event *> events) const {
  size_t width = chartWidth();
  double column = double(section.end - section.start) / double(width);
  std::string text;
  size_t first = 0;
  for (size_t i = 0; i < width; ++i) {
    double from = double(section.start) + column * double(i);
    double to = from + column, busy = 0, most = 0;
    char mark = '.';
    while (first < events.size() && double(events[first]->end) <= from)
      ++first;
    for (size_t at = first; at < events.size(); ++at) {
      if (double(events[at]->start) >= to)
        break;
      double time = overlap(*events[at], from, to);
      busy += time;
      if (time > most) {
        most = time;
        mark = marks.lookup(events[at]->item);
      }
    }
    text += busy > 0 && busy < column / 2 ? '-' : mark;
  }
  return text;
}

double SectionPrinter::busyShare(llvm::ArrayRef<const Event *> events) const {
  double busy = 0;
  for (const Event *event : events)
    busy += overlap(*event, double(section.start), double(section.end));
  return busy / double(section.end - section.start);
}

void SectionPrinter::printChart() {
  auto print = [&](llvm::StringRef name, std::optional<unsigned> network) {
    std::vector<const Event *> events = eventsOn(network);
    os.indent(kIndent) << llvm::left_justify(name, nameWidth()) << "  "
                       << row(events)
                       << llvm::right_justify(formatPercent(busyShare(events)),
                                              kShareWidth - 5)
                       << " busy\n";
  };
  print("compute", std::nullopt);
  for (auto [i, network] : llvm::enumerate(report.time.physical))
    print(network.first, i);
}

void SectionPrinter::printEvents() {
  Table table({{},
               {Column::Left, 30},
               {Column::Left, 30, /*flexible=*/true},
               {Column::Left, 24},
               {Column::Right},
               {Column::Right},
               {Column::Right}},
              {"", "", "", "on", "start", "end", "time"});
  for (const Event &event : section.events) {
    const ReportItem &item = report.items[event.item];
    std::vector<std::string> streams;
    if (const ReportCollective *moved = item.collective())
      for (unsigned network : moved->cost.occupies)
        streams.push_back(report.time.physical[network].first);
    else
      streams.push_back("compute");
    const ReportCollective *moved = item.collective();
    table.addRow({std::string(1, marks.lookup(event.item)),
                  moved ? moved->operand : item.name,
                  moved ? item.kind + " " + llvm::join(moved->axes, ",")
                        : item.compute()->function,
                  llvm::join(streams, ", "), sinceStart(event.start),
                  sinceStart(event.end), seconds(event.end - event.start)});
  }
  table.print(os, colour);
}

void SectionPrinter::print() {
  printHeading();
  printChart();
  printEvents();
}

} // namespace

void shardc::printTimeline(llvm::raw_ostream &os, const Report &report,
                           bool colour) {
  if (report.timeline.empty())
    return;
  printStageTimeline(os, report, colour);
  os << '\n';
  paint(os, "Timeline", Style::Bold, colour);
  os << '\n';
  os.indent(2);
  paint(os,
        "a letter: busy for at least half of the column; -: for less; .: idle; "
        "start and end are since the section's start" +
            std::string(slowsKernels(report)
                            ? "; kernels as fast as without collectives beside "
                              "them"
                            : ""),
        Style::Dim, colour);
  os << '\n';
  for (const Report::Section &section : report.timeline)
    SectionPrinter(os, report, section, colour).print();
}
