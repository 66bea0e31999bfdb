//===- Trace.cpp - The timeline as Chrome trace events --------------------===//
//
// One track for compute, one or more for each network, one for the repeats
// whose iterations are shown and one for each pipeline stage. Starts and ends
// are rounded separately to whole nanoseconds, so slices that are disjoint stay
// so. Format: "Trace Event Format" of Chromium's trace viewer, which Perfetto
// reads.
//
//===----------------------------------------------------------------------===//

#include "ReadReport.h"
#include "shardc/Pictures/Pictures.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace llvm;
using namespace shardc;

namespace {

using Nanoseconds = int64_t;

/// Processes of the trace.
enum Process : int64_t { Device = 1, Stages = 2 };
/// The first tracks of a device; networks follow.
enum Track : int64_t { Repeats = 1, Compute = 2, FirstNetwork = 3 };

struct Slice {
  int64_t op = 0;
  Nanoseconds start = 0, end = 0;
  int64_t track = 0;
};

class TracePrinter {
public:
  TracePrinter(raw_ostream &os, const json::Object &report)
      : report(report), ops(objectsIn(report, "ops")),
        sections(objectsIn(report, "timeline")), json(os) {}

  void print();

private:
  void readSlices();
  void placeOn(std::vector<Slice *> slices, StringRef name, int64_t &track);
  void placeSlices();
  void printName(StringRef what, int64_t process, int64_t track,
                 StringRef name);
  void beginEvent(StringRef phase, StringRef name, int64_t process,
                  int64_t track, Nanoseconds at);
  void printTime(StringRef key, Nanoseconds time);
  void printSections();
  void printSlice(const Slice &slice);
  void printMemory();
  void printFlows();
  void printUpdate(const json::Object &stage, int64_t thread);
  void printStages();
  bool isCollective(const Slice &slice) const {
    return ops[slice.op]->getArray("axes");
  }
  std::vector<const Slice *> computeSlices() const;

  const json::Object &report;
  std::vector<const json::Object *> ops, sections;
  json::OStream json;
  std::vector<Slice> slices;
  std::vector<std::pair<int64_t, std::string>> tracks;
};

} // namespace

static Nanoseconds nanoseconds(const json::Object &of, StringRef key) {
  return std::llround(numberIn(of, key) * 1e9);
}

/// Events that run on from one section into the next stand in both.
void TracePrinter::readSlices() {
  for (const json::Object *section : sections)
    for (const json::Object *event : objectsIn(*section, "events")) {
      int64_t op = integerIn(*event, "op");
      if (op >= 0 && op < int64_t(ops.size()))
        slices.push_back(
            {op, nanoseconds(*event, "start_s"), nanoseconds(*event, "end_s")});
    }
  auto key = [](const Slice &slice) {
    return std::tuple(slice.start, slice.op, slice.end);
  };
  llvm::sort(slices,
             [&](const Slice &a, const Slice &b) { return key(a) < key(b); });
  slices.erase(
      llvm::unique(slices, [&](const Slice &a,
                               const Slice &b) { return key(a) == key(b); }),
      slices.end());
}

/// Slices that overlap go to further tracks of the same name.
void TracePrinter::placeOn(std::vector<Slice *> placed, StringRef name,
                           int64_t &track) {
  SmallVector<Nanoseconds> ends;
  for (Slice *slice : placed) {
    size_t lane = 0;
    while (lane < ends.size() && ends[lane] > slice->start)
      ++lane;
    if (lane == ends.size()) {
      ends.push_back(0);
      tracks.push_back({track + int64_t(lane), name.str()});
    }
    ends[lane] = slice->end;
    slice->track = track + int64_t(lane);
  }
  track += int64_t(ends.size());
}

void TracePrinter::placeSlices() {
  std::vector<Slice *> compute;
  MapVector<StringRef, std::vector<Slice *>> networks;
  for (Slice &slice : slices)
    if (isCollective(slice))
      networks[stringIn(*ops[slice.op], "network")].push_back(&slice);
    else
      compute.push_back(&slice);
  tracks.push_back({Repeats, "repeats"});
  int64_t track = Compute;
  placeOn(compute, "compute", track);
  auto sorted = networks.takeVector();
  llvm::sort(sorted,
             [](const auto &a, const auto &b) { return a.first < b.first; });
  for (auto &[name, on] : sorted)
    placeOn(on, name.empty() ? "no network" : ("network " + name).str(), track);
}

/// Microseconds with all three digits.
void TracePrinter::printTime(StringRef key, Nanoseconds time) {
  json.attributeBegin(key);
  json.rawValue([&](raw_ostream &os) {
    os << time / 1000 << '.' << format("%03d", int(time % 1000));
  });
  json.attributeEnd();
}

void TracePrinter::printName(StringRef what, int64_t process, int64_t track,
                             StringRef name) {
  json.object([&] {
    json.attribute("ph", "M");
    json.attribute("name", what);
    json.attribute("pid", process);
    json.attribute("tid", track);
    json.attributeObject("args", [&] { json.attribute("name", name); });
  });
}

/// What all events have; the caller ends the object.
void TracePrinter::beginEvent(StringRef phase, StringRef name, int64_t process,
                              int64_t track, Nanoseconds at) {
  json.objectBegin();
  json.attribute("ph", phase);
  json.attribute("name", name);
  json.attribute("pid", process);
  json.attribute("tid", track);
  printTime("ts", at);
}

void TracePrinter::printSections() {
  for (const json::Object *section : sections) {
    StringRef repeat = stringIn(*section, "repeat");
    if (repeat.empty())
      continue;
    Nanoseconds start = nanoseconds(*section, "start_s");
    std::string name =
        (repeat + " " + Twine(integerIn(*section, "iteration"))).str();
    beginEvent("X", name, Device, Repeats, start);
    printTime("dur", nanoseconds(*section, "end_s") - start);
    json.objectEnd();
  }
}

void TracePrinter::printSlice(const Slice &slice) {
  const json::Object &op = *ops[slice.op];
  beginEvent("X", stringIn(op, "name"), Device, slice.track, slice.start);
  printTime("dur", slice.end - slice.start);
  json.attribute("cat", stringIn(op, "kind"));
  json.attributeObject("args", [&] {
    json.attribute("op", slice.op);
    for (StringRef key : {"phase", "operand", "from", "to", "reason", "bound",
                          "function", "sharding", "loc", "bytes", "wire_bytes",
                          "exposed_s", "flops", "hbm_bytes", "time_s"})
      if (const json::Value *value = op.get(key))
        json.attribute(key, *value);
  });
  json.objectEnd();
}

std::vector<const Slice *> TracePrinter::computeSlices() const {
  std::vector<const Slice *> compute;
  for (const Slice &slice : slices)
    if (!isCollective(slice))
      compute.push_back(&slice);
  return compute;
}

/// Bytes in use, by kind, while each operation runs.
void TracePrinter::printMemory() {
  for (const Slice *slice : computeSlices()) {
    const json::Object *memory = ops[slice->op]->getObject("memory");
    if (!memory)
      continue;
    std::vector<std::pair<StringRef, int64_t>> kinds;
    for (const auto &[kind, bytes] : *memory)
      if (kind != "bytes")
        kinds.push_back({kind, bytes.getAsInteger().value_or(0)});
    llvm::sort(kinds);
    beginEvent("C", "memory", Device, 0, slice->start);
    json.attributeObject("args", [&] {
      for (auto [kind, bytes] : kinds)
        json.attribute(kind, bytes);
    });
    json.objectEnd();
  }
}

/// From a collective to the operation that begins when it ends, where compute
/// idles before that.
void TracePrinter::printFlows() {
  std::vector<const Slice *> compute = computeSlices();
  int64_t id = 0;
  for (const Slice &from : slices) {
    if (!isCollective(from) || from.start == from.end)
      continue;
    auto waits = llvm::find_if(compute, [&](const Slice *to) {
      return to->start == from.end && to->end > to->start;
    });
    bool isBusy = llvm::any_of(compute, [&](const Slice *other) {
      return other->end > other->start && other->start < from.end &&
             from.end <= other->end;
    });
    if (waits == compute.end() || isBusy)
      continue;
    ++id;
    auto end = [&](StringRef phase, const Slice &slice, Nanoseconds at) {
      beginEvent(phase, "waits", Device, slice.track, at);
      json.attribute("cat", "flow");
      json.attribute("id", id);
      if (phase == "f")
        json.attribute("bp", "e");
      json.objectEnd();
    };
    end("s", from, from.end - 1);
    end("f", **waits, (*waits)->start);
  }
}

/// The update of a stage; nothing if it has none.
void TracePrinter::printUpdate(const json::Object &stage, int64_t thread) {
  const json::Object *update = stage.getObject("update");
  if (!update)
    return;
  Nanoseconds start = nanoseconds(*update, "start_s");
  Nanoseconds length = nanoseconds(*update, "end_s") - start;
  if (length <= 0)
    return;
  beginEvent("X", "update", Stages, thread, start);
  printTime("dur", length);
  json.attribute("cat", "stage");
  json.objectEnd();
}

void TracePrinter::printStages() {
  std::vector<const json::Object *> stages = objectsIn(report, "stages");
  for (auto [i, stage] : llvm::enumerate(stages)) {
    printUpdate(*stage, int64_t(i) + 1);
    for (const json::Object *event : objectsIn(*stage, "events")) {
      Nanoseconds start = nanoseconds(*event, "start_s");
      StringRef kind = stringIn(*event, "kind");
      int64_t microbatch = integerIn(*event, "microbatch");
      beginEvent("X", (kind + Twine(microbatch)).str(), Stages, int64_t(i) + 1,
                 start);
      printTime("dur", nanoseconds(*event, "end_s") - start);
      json.attribute("cat", "stage");
      json.attributeObject("args", [&] {
        json.attribute("kind", kind);
        json.attribute("microbatch", microbatch);
        json.attribute("chunk", integerIn(*event, "chunk"));
      });
      json.objectEnd();
    }
  }
}

void TracePrinter::print() {
  readSlices();
  placeSlices();
  size_t numStages = objectsIn(report, "stages").size();
  json.object([&] {
    json.attributeArray("traceEvents", [&] {
      printName("process_name", Device, 0, "one device");
      for (const auto &[track, name] : tracks)
        printName("thread_name", Device, track, name);
      if (numStages)
        printName("process_name", Stages, 0, "pipeline");
      for (size_t stage = 1; stage <= numStages; ++stage)
        printName("thread_name", Stages, int64_t(stage),
                  "stage " + std::to_string(stage - 1));
      printSections();
      for (const Slice &slice : slices)
        printSlice(slice);
      printFlows();
      printMemory();
      printStages();
    });
    json.attribute("displayTimeUnit", "ms");
  });
}

Error shardc::printTrace(raw_ostream &os, StringRef text) {
  Expected<json::Object> report = readPlanReport(text, "--emit-trace");
  if (!report)
    return report.takeError();
  if (!report->getArray("timeline"))
    return createStringError(inconvertibleErrorCode(),
                             "--emit-trace expects a report with a timeline, "
                             "made with --emit-json --timeline");
  TracePrinter(os, *report).print();
  os << '\n';
  return Error::success();
}
