//===- PlanFigures.cpp - What is compared between plans -------------------===//

#include "shardc/Questions/PlanFigures.h"
#include "shardc/Report/Seconds.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

Picoseconds TimeParts::allCollectives() const {
  Picoseconds sum = 0;
  for (const Collectives &each : collectives)
    sum += each.time;
  return sum;
}

static void add(std::vector<TimeParts::Collectives> &list,
                TimeParts::Collectives more) {
  if (more.time == 0)
    return;
  auto known =
      llvm::find_if(list, [&](const auto &each) { return each.isLike(more); });
  if (known == list.end())
    list.push_back(std::move(more));
  else
    known->time += more.time;
}

TimeParts TimeParts::minus(const TimeParts &other) const {
  TimeParts result = *this;
  result.compute -= other.compute;
  result.hbm -= other.hbm;
  for (Collectives each : other.collectives) {
    each.time = -each.time;
    add(result.collectives, std::move(each));
  }
  llvm::erase_if(result.collectives,
                 [](const Collectives &each) { return each.time == 0; });
  llvm::sort(result.collectives, [](const auto &a, const auto &b) {
    return std::tuple(-std::abs(a.time), a.kind, a.axes) <
           std::tuple(-std::abs(b.time), b.kind, b.axes);
  });
  return result;
}

TimeParts shardc::partsOf(const Report &report) {
  bool scheduled = report.plan.objective == "scheduled";
  TimeParts parts;
  for (const ReportItem &item : report.items) {
    if (const ReportCollective *moved = item.collective()) {
      add(parts.collectives,
          {item.kind, moved->axes, scheduled ? moved->exposed : item.total});
      continue;
    }
    Picoseconds compute = std::min(
        item.total,
        toPicoseconds(item.compute()->cost.computeSeconds()) * item.count);
    parts.compute += compute;
    parts.hbm += item.total - compute;
  }
  return parts;
}

PlanFigures shardc::figuresOf(const Report &report) {
  PlanFigures figures;
  figures.status = report.plan.status;
  figures.fits = report.fits();
  figures.upper = wholePicoseconds(report.time.upper);
  figures.scheduled = wholePicoseconds(report.time.scheduled);
  figures.lower = wholePicoseconds(report.time.lower);
  figures.value = report.plan.objective == "scheduled" ? figures.scheduled
                  : report.plan.objective == "lower"   ? figures.lower
                                                       : figures.upper;
  if (report.plan.bound)
    figures.bound = wholePicoseconds(*report.plan.bound);
  figures.parts = partsOf(report);
  figures.peak = report.memory.peak;
  figures.allowed = report.memory.allowed();
  figures.peakName = report.memory.peakName;
  figures.peakLoc = report.memory.peakLoc;
  return figures;
}
