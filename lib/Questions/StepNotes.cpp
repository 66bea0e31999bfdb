//===- StepNotes.cpp - What a training step does in vain ------------------===//

#include "shardc/Questions/StepNotes.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

using namespace shardc;
using llvm::StringRef;

namespace {

/// So much of a step or of a device's memory is worth a note.
constexpr double kWorthANote = 0.01;

class NoteFinder {
public:
  explicit NoteFinder(const Report &report)
      : report(report),
        microbatches(report.training ? report.training->microbatches : 1),
        room(double(report.memory.allowed() - report.memory.peak)) {}

  std::vector<StepNote> find();

private:
  void findRecomputed();
  void findReducedOften();
  void findWholeState();
  bool isWorthTime(Picoseconds time) const {
    return double(time) >= kWorthANote * report.time.scheduled * 1e12;
  }
  const ReportTensor *tensorOf(StringRef kind, StringRef name) const;
  double devicesOn(llvm::ArrayRef<std::string> axes) const;

  const Report &report;
  int64_t microbatches;
  /// Bytes of a device that the plan leaves free.
  double room;
  std::vector<StepNote> notes;
};

} // namespace

const ReportTensor *NoteFinder::tensorOf(StringRef kind, StringRef name) const {
  for (const ReportTensor &tensor : report.tensors)
    if (tensor.kind == kind && tensor.name == name)
      return &tensor;
  return nullptr;
}

double NoteFinder::devicesOn(llvm::ArrayRef<std::string> axes) const {
  double devices = 1;
  for (const Report::Axis &axis : report.mesh)
    if (llvm::is_contained(axes, axis.name))
      devices *= double(axis.size);
  return devices;
}

/// Values that the backward pass computes again though they could be kept.
void NoteFinder::findRecomputed() {
  llvm::MapVector<StringRef, StepNote> found;
  for (const ReportItem &item : report.items) {
    const ReportTensor *value = tensorOf("activation", item.name);
    if (!item.compute() || item.phase != shd::Phase::Recompute || !value)
      continue;
    StepNote &note = found[item.name];
    if (note.kind.empty()) {
      note.kind = "recomputed";
      note.loc = item.loc;
      note.bytes =
          value->localBytes * double(item.count) / double(microbatches);
    }
    note.cost += item.total;
  }
  for (auto &[name, note] : found) {
    if (!isWorthTime(note.cost) || note.bytes > room)
      continue;
    note.text = fmt::format(
        "'{}' is computed again, though {} would keep it and {} are "
        "free; `remat = none` without a `recompute` of it does",
        name.str(), formatBytes(note.bytes), formatBytes(room));
    notes.push_back(std::move(note));
  }
}

/// Gradients that each microbatch reduces, though a partial sum could wait for
/// the last one.
void NoteFinder::findReducedOften() {
  if (microbatches < 2)
    return;
  for (const ReportItem &item : report.items) {
    const ReportCollective *moved = item.collective();
    bool reduces = item.kind == "all_reduce" || item.kind == "reduce_scatter";
    if (!moved || !reduces || item.count % microbatches != 0)
      continue;
    const ReportTensor *gradient = tensorOf("gradient", moved->operand);
    if (!gradient)
      continue;
    StepNote note;
    note.kind = "reduced-often";
    note.loc = item.loc;
    note.cost = item.total / microbatches * (microbatches - 1);
    // The partial sum is of the whole gradient, as far as the axes go.
    double split = 1;
    for (const ReportTensor::Dim &dim : gradient->dims)
      for (const std::string &axis : moved->axes)
        if (llvm::is_contained(dim.axes, axis))
          split *= devicesOn(axis);
    note.bytes = gradient->localBytes * (split - 1);
    if (!isWorthTime(note.cost) || note.bytes > room)
      continue;
    note.text = fmt::format(
        "the gradient of '{}' is reduced over {} in each of {} microbatches; "
        "`gradient {}[...]{{+{}}}` adds it up first, in {}",
        gradient->of, llvm::join(moved->axes, ", "), microbatches, gradient->of,
        llvm::join(moved->axes, ", +"),
        note.bytes > 0 ? formatBytes(note.bytes) + " more" : "no more memory");
    notes.push_back(std::move(note));
  }
}

/// Moments and master copies that every device of an axis holds.
void NoteFinder::findWholeState() {
  for (const Report::Axis &axis : report.mesh) {
    if (axis.size < 2)
      continue;
    double bytes = 0;
    for (const ReportTensor &tensor : report.tensors) {
      bool isState = tensor.kind == "moment" || tensor.kind == "master";
      bool isSplit = llvm::any_of(tensor.dims, [&](const auto &dim) {
        return llvm::is_contained(dim.axes, axis.name);
      });
      if (isState && !tensor.dims.empty() && !isSplit)
        bytes += tensor.localBytes;
    }
    double freed = bytes * (1 - 1 / double(axis.size));
    if (freed < kWorthANote * double(report.memory.allowed()))
      continue;
    notes.push_back({"whole-state",
                     fmt::format("{} of optimizer state are the same on all {} "
                                 "devices of {}; split over it, as ZeRO-1 "
                                 "does, they free {} of each",
                                 formatBytes(bytes), axis.size, axis.name,
                                 formatBytes(freed)),
                     "", 0, -freed});
  }
}

std::vector<StepNote> NoteFinder::find() {
  if (!report.training || !report.memory.fits)
    return {};
  findRecomputed();
  findReducedOften();
  findWholeState();
  llvm::stable_sort(notes, [](const StepNote &a, const StepNote &b) {
    return a.cost > b.cost;
  });
  return std::move(notes);
}

std::vector<StepNote> shardc::findStepNotes(const Report &report) {
  return NoteFinder(report).find();
}
