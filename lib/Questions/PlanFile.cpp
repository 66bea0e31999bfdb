//===- PlanFile.cpp - Planning from a plan that is there ------------------===//

#include "shardc/Questions/PlanFile.h"
#include "Pins.h"
#include "RecordedPlan.h"
#include "mlir/IR/Diagnostics.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Solver/Deadline.h"
#include "llvm/Support/GlobPattern.h"
#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Of = PlannedSharding::Of;

namespace {

/// The name of a place, in the program and in the plan alike.
struct PlaceName {
  Of of = Of::Tensor;
  std::string name, reader;
  unsigned operand = 0, ordinal = 0;

  auto key() const { return std::tie(of, name, reader, operand, ordinal); }
  bool operator<(const PlaceName &other) const { return key() < other.key(); }
};

struct NamedPlace {
  PlaceName name;
  PinPlace place;
};

} // namespace

/// Every place of a program where it can say `@`, with its name.
static std::vector<NamedPlace> namedPlaces(ArrayRef<Operation *> operations) {
  std::map<std::pair<Of, std::string>, unsigned> seen;
  std::vector<NamedPlace> places;
  for (auto [i, op] : llvm::enumerate(operations)) {
    auto number = unsigned(i);
    std::string name = tensorName(op);
    if (isa<OutputOp>(op)) {
      unsigned ordinal = seen[{Of::Output, name}]++;
      places.push_back({{Of::Output, name, "", 0, ordinal}, {number, 0u}});
      continue;
    }
    if (name.empty())
      continue;
    unsigned ordinal = seen[{Of::Tensor, name}]++;
    places.push_back({{Of::Tensor, name, "", 0, ordinal}, {number, {}}});
    if (introducedBy(op))
      continue;
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      if (std::string read = valueName(op->getOperand(operand)); !read.empty())
        places.push_back(
            {{Of::Use, read, name, operand, ordinal}, {number, operand}});
  }
  return places;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::optional<PlanFile> shardc::readPlanJson(llvm::StringRef json,
                                             std::string file,
                                             std::string &error) {
  std::optional<RecordedPlan> record = readRecord(json, error);
  if (!record)
    return std::nullopt;
  PlanFile plan{std::move(file), {}, {}};
  std::map<std::pair<Of, std::string>, unsigned> seen;
  for (const ReportTensor &tensor : record->tensors) {
    PlannedSharding &sharding = plan.shardings.emplace_back();
    sharding.of = tensor.kind == "output" ? Of::Output : Of::Tensor;
    sharding.name = tensor.name;
    plan.names.insert(tensor.name);
    sharding.ordinal = seen[{sharding.of, tensor.name}]++;
    for (const ReportTensor::Dim &dim : tensor.dims)
      sharding.dims.push_back(dim.axes);
    sharding.partial = tensor.partial;
  }
  return plan;
}

PlanFile shardc::readPlanProgram(ProgramOp program, std::string file) {
  PlanFile plan{std::move(file), {}, {}};
  std::vector<Operation *> operations = operationsOf(program);
  for (const NamedPlace &each : namedPlaces(operations)) {
    if (each.name.of != Of::Use && !isa<ReshardOp>(operations[each.place.op]))
      plan.names.insert(each.name.name);
    ShardingAttr pin = pinAt(operations, each.place);
    if (!pin)
      continue;
    PlannedSharding &sharding = plan.shardings.emplace_back();
    std::tie(sharding.of, sharding.name, sharding.reader, sharding.operand,
             sharding.ordinal) = each.name.key();
    for (DimShardingAttr dim : pin.getDims()) {
      std::vector<std::string> &axes = sharding.dims.emplace_back();
      for (StringAttr axis : dim.getAxes())
        axes.push_back(axis.str());
    }
    for (StringAttr axis : pin.getPartial())
      sharding.partial.push_back(axis.str());
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// Applying
//===----------------------------------------------------------------------===//

namespace {

class PlanApplier {
public:
  PlanApplier(ProgramOp program, const PlanFile &plan)
      : program(program), plan(plan),
        mesh(program.getMeshAttr() ? toMesh(program.getMeshAttr()) : Mesh()),
        operations(operationsOf(program)) {}

  LogicalResult run(ArrayRef<std::string> freed);

private:
  bool isFree(StringRef name);
  LogicalResult apply(const PlannedSharding &sharding, PinPlace place);
  void warnOf(const std::set<std::string> &names, StringRef has,
              StringRef lacks);

  ProgramOp program;
  const PlanFile &plan;
  const Mesh mesh;
  std::vector<Operation *> operations;
  struct Glob {
    std::string text;
    llvm::GlobPattern pattern;
    bool fits = false;
  };
  std::vector<Glob> globs;
};

} // namespace

bool PlanApplier::isFree(StringRef name) {
  bool free = false;
  for (Glob &glob : globs)
    if (glob.pattern.match(name))
      free = glob.fits = true;
  return free;
}

LogicalResult PlanApplier::apply(const PlannedSharding &sharding,
                                 PinPlace place) {
  Location loc = operations[place.op]->getLoc();
  Value value = valueAt(operations, place);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  std::string subject = "'" + sharding.name + "'";
  // A report has the repeat's index in front of its weights and states.
  size_t rank = type ? type.getRank() : 0;
  size_t outer = 0;
  if (auto part = dyn_cast<PartOp>(operations[place.op]))
    outer = part.getAt().size();
  size_t given = sharding.dims.size();
  if (!type || (given != rank && given != rank + outer))
    return emitError(loc) << subject << " has " << rank
                          << " dimensions, and the plan '" << plan.file
                          << "' places " << given;
  Layout layout = Layout::replicated(rank);
  AxisSet used = 0;
  /// True if the axis is there and was not used before.
  auto take = [&](StringRef name, llvm::function_ref<void(AxisIndex)> put) {
    std::optional<AxisIndex> axis = mesh.find(name);
    bool again = axis && (used & axisBit(*axis));
    if (!axis || again) {
      emitError(loc) << "the plan '" << plan.file << "' splits " << subject
                     << " over axis " << name
                     << (again ? " twice" : ", which the mesh lacks");
      return false;
    }
    used |= axisBit(*axis);
    // Axes of one device change nothing.
    if (mesh.axes[*axis].size > 1)
      put(*axis);
    return true;
  };
  for (auto [dim, axes] :
       llvm::enumerate(ArrayRef(sharding.dims).take_back(rank)))
    for (const std::string &name : axes)
      if (!take(name, [&, dim = dim](AxisIndex axis) {
            layout.dims[dim].push_back(axis);
          }))
        return failure();
  for (const std::string &name : sharding.partial)
    if (!take(name, [&](AxisIndex axis) { layout.partial |= axisBit(axis); }))
      return failure();
  if (!program.getAllowPadding() && !divides(mesh, tensorShape(type), layout))
    return emitError(loc) << "the plan '" << plan.file << "' places " << subject
                          << " as "
                          << notationAt(operations, mesh, place, layout)
                          << ", where an axis does not divide what it splits";
  setPinAt(operations, place, toSharding(program.getContext(), mesh, layout));
  return success();
}

void PlanApplier::warnOf(const std::set<std::string> &names, StringRef has,
                         StringRef lacks) {
  if (names.empty())
    return;
  constexpr size_t kMost = 5;
  std::string text;
  size_t shown = 0;
  for (const std::string &name : names)
    if (shown++ < kMost)
      text += (text.empty() ? "'" : ", '") + name + "'";
  if (names.size() > kMost)
    text += " and " + std::to_string(names.size() - kMost) + " more";
  emitWarning(UnknownLoc::get(program.getContext()))
      << has << " has " << text << ", which " << lacks << " lacks";
}

LogicalResult PlanApplier::run(ArrayRef<std::string> freed) {
  for (const std::string &text : freed)
    globs.push_back({text, llvm::cantFail(llvm::GlobPattern::create(text))});
  std::map<PlaceName, PinPlace> places;
  std::set<std::string> inProgram;
  for (NamedPlace &each : namedPlaces(operations)) {
    if (each.name.of != Of::Use)
      inProgram.insert(each.name.name);
    places.emplace(std::move(each.name), each.place);
  }
  for (const PlannedSharding &sharding : plan.shardings) {
    auto it = places.find({sharding.of, sharding.name, sharding.reader,
                           sharding.operand, sharding.ordinal});
    if (it == places.end())
      continue;
    bool readerIsFree = !sharding.reader.empty() && isFree(sharding.reader);
    if (isFree(sharding.name) || readerIsFree)
      setPinAt(operations, it->second, {});
    else if (failed(apply(sharding, it->second)))
      return failure();
  }
  for (const Glob &glob : globs)
    if (!glob.fits)
      return emitError(UnknownLoc::get(program.getContext()))
             << "--free '" << glob.text
             << "' matches no tensor of both the program and the plan";
  std::set<std::string> onlyPlan, onlyProgram;
  for (const std::string &name : plan.names)
    if (!inProgram.contains(name))
      onlyPlan.insert(name);
  for (const std::string &name : inProgram)
    if (!plan.names.contains(name))
      onlyProgram.insert(name);
  if (onlyPlan.size() == plan.names.size())
    return emitError(UnknownLoc::get(program.getContext()))
           << "the plan '" << plan.file << "' names no tensor of the program";
  std::string file = "the plan '" + plan.file + "'";
  warnOf(onlyPlan, file, "the program");
  warnOf(onlyProgram, "the program", file);
  return success();
}

std::optional<std::string> shardc::globError(StringRef text) {
  llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(text);
  if (pattern)
    return std::nullopt;
  return llvm::toString(pattern.takeError());
}

/// Time of a step of a program that was planned, by what was minimised; nothing
/// if the plan does not fit.
static std::optional<double> plannedSeconds(ProgramOp program) {
  auto record = program->getAttrOfType<DictionaryAttr>(kPlan);
  auto value = record.getAs<IntegerAttr>("value_ps");
  auto status = record.getAs<StringAttr>("status");
  if (!value || (status && status.getValue() == "infeasible"))
    return std::nullopt;
  return double(value.getInt()) / 1e12;
}

/// Puts into `module` the faster one of its plan and of `open`, the plan of the
/// same program without what a plan file says; what is proven is then what is
/// proven of that. `open` is used up.
static void keepFaster(ModuleOp module, ModuleOp open) {
  ProgramOp given = *module.getOps<ProgramOp>().begin();
  ProgramOp searched = *open.getOps<ProgramOp>().begin();
  std::optional<double> value = plannedSeconds(given);
  std::optional<double> other = plannedSeconds(searched);
  if (!value || (other && *other <= *value)) {
    module.getBodyRegion().takeBody(open.getBodyRegion());
    return;
  }
  // Optimal with what the file says is not optimal without.
  NamedAttrList record(given->getAttrOfType<DictionaryAttr>(kPlan));
  auto proven = searched->getAttrOfType<DictionaryAttr>(kPlan);
  record.set("status", StringAttr::get(given.getContext(), "feasible"));
  record.erase("bound_ps");
  if (Attribute seconds = proven.get("search_s"))
    record.set("search_s", seconds);
  if (other)
    if (Attribute bound = proven.get("bound_ps"))
      record.set("bound_ps", bound);
  given->setAttr(kPlan, record.getDictionary(given.getContext()));
}

LogicalResult shardc::applyPlanFile(ProgramOp program, const PlanFile &plan,
                                    ArrayRef<std::string> freed) {
  return PlanApplier(program, plan).run(freed);
}

/// Part of a time limit for the plan with what the file says; the rest is for
/// the one without.
static constexpr double kShareOfGiven = 0.5;

std::optional<Report::Given> shardc::planWithFile(Compilation &compilation,
                                                  const PlanFile &file,
                                                  PlanFileUse use,
                                                  ArrayRef<std::string> freed) {
  Compilation open(compilation.clone(), Compilation::Stage::Imported,
                   compilation.options());
  bool isStart = use == PlanFileUse::Start;
  // Where the file leaves little open, it is a start however short the time.
  std::optional<double> &limit = compilation.options().plan.timeLimitSeconds;
  const solver::Deadline deadline(limit, compilation.options().interrupted);
  limit = isStart && freed.empty() ? std::nullopt
                                   : deadline.part(kShareOfGiven).remaining();
  LogicalResult planned = applyPlanFile(compilation.program(), file, freed);
  if (succeeded(planned))
    planned = compilation.plan();
  limit = open.options().plan.timeLimitSeconds = deadline.remaining();
  if (failed(planned))
    return std::nullopt;
  Report::Given given{file.file, isStart ? "start" : "pins",
                      plannedSeconds(compilation.program()), std::nullopt};
  // After an interrupt there is no other plan.
  const std::atomic<bool> *interrupted = deadline.interruption();
  if (interrupted && *interrupted)
    return given;
  if (failed(open.plan()))
    return std::nullopt;
  given.reoptimised = plannedSeconds(open.program());
  if (isStart)
    keepFaster(compilation.module(), open.module());
  return given;
}
