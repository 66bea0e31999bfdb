//===- Lint.cpp - What a plan does in vain --------------------------------===//
//
// Suspects of the explicit plan (Suspects.h), and every annotation, each with
// changes that may help. The changes are planned, and the best one is kept.
//
//===----------------------------------------------------------------------===//

#include "shardc/Questions/Lint.h"
#include "Pins.h"
#include "mlir/IR/Builders.h"
#include "shardc/Frontend/Question.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Report/Suspects.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Changes that are planned; those of what takes longest come first.
static constexpr size_t kMostTrials = 200;
/// Parts of the time that is left for the plan of the program as it is written,
/// and for plans of little effort.
static constexpr double kShareOfWritten = 0.25, kShareOfQuick = 0.6;

namespace {

/// A change that is to be tried.
struct Trial {
  LintFix fix;
  Variant variant;
  /// It need not be faster, only as fast.
  bool asFastIsEnough = false;
};

/// A candidate for a finding.
struct Candidate {
  LintFinding finding;
  std::vector<Trial> trials;
};

/// Positions of operations in program order.
using Numbers = llvm::DenseMap<Operation *, unsigned>;

class Linter {
public:
  Linter(const ProgramText &text, Program &program, const PlanOptions &options,
         TrialRunner &runner)
      : text(text), mesh(program.mesh), options(options), runner(runner),
        op(*program.module->getOps<ProgramOp>().begin()),
        operations(operationsOf(op)),
        pins(collectPins(text, mesh, operations)) {}

  std::optional<Lint> run();

private:
  Picoseconds threshold() const {
    return std::max<Picoseconds>(
        1, Picoseconds(kLintThreshold * double(result.value)));
  }
  void collect(ArrayRef<Operation *> planned, const Suspect &suspect);
  void addPinTrials(Candidate &candidate, ArrayRef<Variant::Pin> pins);
  void addCopyTrial(Candidate &candidate, const Numbers &numbers,
                    const Suspect::Copy &copy);
  std::string nameOfReader(PinPlace place) const {
    Operation *reader = operations[place.op];
    return reader->getNumResults() > 0 ? valueName(reader->getResults().front())
                                       : tensorName(reader);
  }
  void addAxisTrials(Candidate &candidate, const std::string &axis);
  void addDimTrial(Candidate &candidate, const Suspect &suspect);
  void addWrittenPins();
  void addUnfusedLosses();
  void addPadding(const Report &report);
  Trial withoutPins() const;
  static bool isOfPins(const LintFinding &finding) {
    return finding.kind == "pin-costs" || finding.kind == "pins-cost";
  }
  /// Known by what the change saves alone.
  static bool isOfChange(const LintFinding &finding) {
    return isOfPins(finding) || finding.kind == "unfused-loss" ||
           finding.kind == "undivided";
  }
  void tryAll();
  void plan(ArrayRef<Trial *> trials, double effort);
  void keep(Candidate &candidate);

  const ProgramText &text;
  const Mesh &mesh;
  const PlanOptions &options;
  TrialRunner &runner;
  ProgramOp op;
  std::vector<Operation *> operations;
  std::vector<WrittenPin> pins;
  std::vector<Candidate> candidates;
  bool isOptimal = false;
  Lint result;
};

} // namespace

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

/// Other annotations; and where they take the place of what the program says,
/// none.
void Linter::addPinTrials(Candidate &candidate, ArrayRef<Variant::Pin> pins) {
  bool replaces = llvm::any_of(pins, [&](const Variant::Pin &pin) {
    return pinAt(operations, pin.place) != nullptr;
  });
  // No plan with more annotations is faster than the best with fewer.
  if (isOptimal && !replaces)
    return;
  Trial trial;
  trial.fix.kind = "pin";
  trial.fix.loc = placeText(text, operations, pins.front().place);
  std::vector<std::string> texts;
  for (const Variant::Pin &pin : pins) {
    Operation *at = operations[pin.place.op];
    std::string written = notationAt(operations, mesh, pin.place, *pin.layout);
    if (!pin.place.operand) {
      texts.push_back(tensorName(at) + written);
      continue;
    }
    std::string name = valueName(at->getOperand(*pin.place.operand));
    if (name.empty())
      return; // the program has no place for it
    texts.push_back(name + written);
  }
  trial.fix.change = llvm::join(texts, " and ");
  if (pins.front().place.operand)
    trial.fix.change += " in '" + nameOfReader(pins.front().place) + "'";
  trial.variant.pins.assign(pins.begin(), pins.end());
  candidate.trials.push_back(std::move(trial));
}

/// Takes the copy into a program: as a statement `T2[...] = T` behind the
/// declaration would.
static void insertCopy(ProgramOp program, unsigned tensor, ShardingAttr layout,
                       ArrayRef<PinPlace> readers) {
  std::vector<Operation *> all = operationsOf(program);
  Operation *maker = all[tensor];
  OpBuilder builder(maker->getContext());
  builder.setInsertionPointAfter(maker);
  Value value = onlyResult(maker);
  SmallVector<Attribute> names;
  for (const std::string &index : indexNames(value))
    names.push_back(builder.getStringAttr(index));
  auto list = builder.getArrayAttr(names);
  auto copy = ReshardOp::create(
      builder, maker->getLoc(), value.getType(), value,
      IndexingAttr::get(builder.getContext(), {list}, {list}));
  copy->setAttr(kName, builder.getStringAttr(valueName(value) + "2"));
  setResultPin(copy.getResult(), layout);
  for (PinPlace reader : readers)
    all[reader.op]->setOperand(*reader.operand, copy.getResult());
}

void Linter::addCopyTrial(Candidate &candidate, const Numbers &numbers,
                          const Suspect::Copy &copy) {
  // The search has made it if it helps.
  if (isOptimal || !numbers.contains(copy.of))
    return;
  unsigned tensor = numbers.lookup(copy.of);
  std::vector<PinPlace> readers;
  for (OpOperand *use : copy.readers)
    if (auto it = numbers.find(use->getOwner()); it != numbers.end())
      readers.push_back({it->second, use->getOperandNumber()});
  if (readers.size() != copy.readers.size())
    return;
  llvm::sort(readers, [](PinPlace a, PinPlace b) {
    return std::pair(a.op, *a.operand) < std::pair(b.op, *b.operand);
  });
  std::string name = tensorName(operations[tensor]);
  if (name.empty())
    return; // the program has no place for it
  PinPlace place{tensor, std::nullopt};
  std::vector<std::string> users;
  for (PinPlace reader : readers)
    if (std::string user = "'" + nameOfReader(reader) + "'";
        !llvm::is_contained(users, user))
      users.push_back(std::move(user));
  Trial trial;
  trial.fix.kind = "copy";
  trial.fix.change = name + "2" +
                     notationAt(operations, mesh, place, copy.layout) + " = " +
                     name + ", which " + llvm::join(users, ", ") +
                     (users.size() == 1 ? " reads" : " read");
  trial.fix.loc = placeText(text, operations, place);
  trial.variant.edit = [tensor, readers, layout = copy.layout,
                        mesh = mesh](ProgramOp edited) {
    insertCopy(edited, tensor, toSharding(edited.getContext(), mesh, layout),
               readers);
  };
  candidate.trials.push_back(std::move(trial));
}

/// The search, or no annotations; and fewer devices.
void Linter::addAxisTrials(Candidate &candidate, const std::string &axis) {
  if (options.mode != OptMode::Optimize) {
    Trial &trial = candidate.trials.emplace_back();
    trial.fix.kind = "search";
    trial.fix.change = "--opt=optimize";
    trial.variant.mode = OptMode::Optimize;
  } else if (!pins.empty()) {
    candidate.trials.push_back(withoutPins());
  }
  Trial trial;
  trial.fix.kind = "mesh";
  trial.fix.change = "mesh with " + axis + "=1";
  int64_t devices = mesh.numDevices();
  int64_t fewer = devices / mesh.axes[*mesh.find(axis)].size;
  trial.fix.gain =
      "on " + formatDigits(fewer) + " of " + formatDigits(devices) + " devices";
  trial.variant.point.push_back({Setting::Kind::Axis, axis, 1, nullptr, {}});
  trial.asFastIsEnough = true;
  candidate.trials.push_back(std::move(trial));
}

void Linter::addDimTrial(Candidate &candidate, const Suspect &suspect) {
  std::optional<int64_t> extent =
      writtenExtent(text, op.getContext(), suspect.name);
  if (!extent)
    return;
  Trial trial;
  trial.fix.kind = "dim";
  trial.fix.change =
      "--dim " + suspect.name + "=" + std::to_string(suspect.padded);
  trial.fix.gain =
      formatDigits(suspect.padded - *extent) + " more of " + suspect.name;
  trial.variant.point.push_back(
      {Setting::Kind::Dim, suspect.name, suspect.padded, nullptr, {}});
  trial.asFastIsEnough = true;
  candidate.trials.push_back(std::move(trial));
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// `planned` are the operations that the suspect speaks of, in the same order
/// as those of the program here.
void Linter::collect(ArrayRef<Operation *> planned, const Suspect &suspect) {
  Numbers numbers;
  for (auto [number, each] : llvm::enumerate(planned))
    numbers[each] = number;
  Candidate &candidate = candidates.emplace_back();
  candidate.finding.kind = stringify(suspect.kind).str();
  candidate.finding.text = suspect.text;
  candidate.finding.loc = suspect.loc;
  candidate.finding.cost = suspect.cost;
  for (const std::vector<Suspect::Pin> &entry : suspect.pins) {
    std::vector<Variant::Pin> pins;
    for (const Suspect::Pin &pin : entry)
      if (auto it = numbers.find(pin.op); it != numbers.end())
        pins.push_back({{it->second, pin.operand}, pin.layout});
    if (pins.size() != entry.size())
      continue;
    addPinTrials(candidate, pins);
  }
  if (suspect.copy)
    addCopyTrial(candidate, numbers, *suspect.copy);
  switch (suspect.kind) {
  case Suspect::Kind::IdleAxis:
    if (const ast::MeshDecl *decl = text.meshDecl())
      for (const ast::MeshAxisDecl &axis : decl->axes)
        if (axis.name.text == suspect.name)
          candidate.finding.loc = placeText(text, axis.name.range.Start);
    addAxisTrials(candidate, suspect.name);
    break;
  case Suspect::Kind::Padding:
    addDimTrial(candidate, suspect);
    break;
  case Suspect::Kind::LatencyBound: {
    // Nothing but the price changes: one collective for all.
    LintFix &fix = candidate.finding.fix;
    fix.kind = "merge";
    fix.change = "one collective for all of them";
    fix.loc = suspect.loc;
    // Under `lower`, time beside other work may not count.
    if (options.objective == Objective::Scheduled)
      fix.saves = suspect.scheduledSaves.value_or(0);
    else if (options.objective == Objective::Upper)
      fix.saves = suspect.saves;
    break;
  }
  default:
    break;
  }
}

void Linter::addWrittenPins() {
  for (const WrittenPin &pin : pins) {
    Candidate &candidate = candidates.emplace_back();
    candidate.finding.kind = "pin-costs";
    candidate.finding.text =
        (pin.of == "tensor" ? "" : pin.of + " ") + pin.text + " costs time";
    candidate.finding.loc = pin.loc;
    Trial &trial = candidate.trials.emplace_back();
    trial.fix.kind = "unpin";
    trial.fix.change = "without the @ of " + pin.text;
    trial.fix.loc = pin.loc;
    trial.variant = pin.withoutIt();
  }
  if (pins.size() < 2)
    return;
  // An annotation may follow from the others.
  Candidate &all = candidates.emplace_back();
  all.finding.kind = "pins-cost";
  all.finding.text =
      "all " + std::to_string(pins.size()) + " annotations together cost time";
  all.finding.loc = pins.front().loc;
  all.trials.push_back(withoutPins());
}

/// Logits that are written and read again, where a fused kernel would not.
void Linter::addUnfusedLosses() {
  for (const UnfusedLoss &loss : unfusedLosses(operations)) {
    std::string logits = valueName(loss.op->getOperand(0));
    Candidate &candidate = candidates.emplace_back();
    candidate.finding.kind = "unfused-loss";
    candidate.finding.text = "the logits" +
                             (logits.empty() ? "" : " '" + logits + "'") +
                             " are written for a cross_entropy, and read again";
    candidate.finding.loc = locationText(loss.op->getLoc());
    Trial &trial = candidate.trials.emplace_back();
    trial.fix.kind = "chunks";
    trial.fix.change = "cross_entropy(..., chunks=all)";
    trial.fix.loc = candidate.finding.loc;
    trial.variant = Variant::inChunks(loss, kAllChunks);
  }
}

/// Extents that stay whole because no axis divides them.
void Linter::addPadding(const Report &report) {
  std::optional<std::string> undivided = report.undivided();
  if (!undivided || op.getAllowPadding() || options.mode != OptMode::Optimize)
    return;
  Candidate &candidate = candidates.emplace_back();
  candidate.finding.kind = "undivided";
  candidate.finding.text = *undivided;
  candidate.finding.loc = locationText(op.getLoc());
  Trial &trial = candidate.trials.emplace_back();
  trial.fix.kind = "padding";
  trial.fix.change = "--allow-padding";
  trial.variant.edit = [](ProgramOp edited) { edited.setAllowPadding(true); };
}

Trial Linter::withoutPins() const {
  Trial trial;
  trial.fix.kind = "unpin";
  trial.fix.change = "without any @";
  for (const WrittenPin &pin : pins)
    llvm::append_range(trial.variant.pins, pin.withoutIt().pins);
  return trial;
}

//===----------------------------------------------------------------------===//
// Trying
//===----------------------------------------------------------------------===//

void Linter::tryAll() {
  std::vector<Trial *> trials;
  std::vector<Candidate *> order;
  for (Candidate &candidate : candidates)
    order.push_back(&candidate);
  // Annotations first: they are few.
  auto rank = [](const Candidate *each) {
    return isOfChange(each->finding) ? INT64_MAX : each->finding.cost;
  };
  llvm::stable_sort(order, [&](const Candidate *a, const Candidate *b) {
    return rank(a) > rank(b);
  });
  for (Candidate *candidate : order)
    for (Trial &trial : candidate->trials)
      trials.push_back(&trial);
  result.tried = std::min(trials.size(), kMostTrials);
  result.untried = trials.size() - result.tried;
  trials.resize(result.tried);
  // Most changes save nothing, which less effort shows, too.
  double effort = std::min(kFinalEffort, options.effort);
  plan(trials, effort);
  if (effort == options.effort)
    return;
  llvm::erase_if(trials, [&](const Trial *trial) {
    return !trial->asFastIsEnough &&
           (!trial->fix.plan || trial->fix.saves < threshold());
  });
  plan(trials, options.effort);
}

/// Plans the changes and compares them with the plan without.
void Linter::plan(ArrayRef<Trial *> trials, double effort) {
  std::vector<Variant> variants;
  for (const Trial *trial : trials)
    variants.emplace_back(trial->variant).effort = effort;
  double share = effort < options.effort ? kShareOfQuick : 1;
  for (auto [trial, outcome] :
       llvm::zip_equal(trials, runner.plan(variants, share))) {
    if (!outcome.report)
      continue;
    trial->fix.plan = figuresOf(*outcome.report);
    trial->fix.saves =
        result.value - objectiveTime(*trial->fix.plan, options.objective);
  }
}

/// The trial that saves most; of equal ones the first.
void Linter::keep(Candidate &candidate) {
  LintFinding &finding = candidate.finding;
  bool isWorthwhile = finding.fix.saves >= threshold();
  for (Trial &trial : candidate.trials) {
    LintFix &fix = trial.fix;
    if (!fix.plan || !fix.plan->fits)
      continue;
    bool saves = fix.saves >= threshold();
    bool isEnough = saves || (trial.asFastIsEnough && -fix.saves < threshold());
    if (!isEnough || (isWorthwhile && fix.saves <= finding.fix.saves))
      continue;
    isWorthwhile = true;
    finding.fix = std::move(fix);
  }
  if (!isWorthwhile)
    return;
  if (isOfChange(finding))
    finding.cost = finding.fix.saves;
  // Together they are a finding if no one of them costs as much.
  if (finding.kind == "pins-cost" &&
      llvm::any_of(result.findings, [&](const LintFinding &other) {
        return other.kind == "pin-costs" &&
               other.cost > finding.cost - threshold();
      }))
    return;
  result.findings.push_back(std::move(finding));
}

std::optional<Lint> Linter::run() {
  Variant written;
  written.inspect = [&](ProgramOp planned, ArrayRef<Operation *> numbered,
                        PlanningContext &context, const Report &report) {
    isOptimal = report.plan.status == "optimal";
    for (const Suspect &suspect :
         findSuspects(planned, context, report, kLintThreshold))
      collect(numbered, suspect);
  };
  Outcome outcome = runner.plan(written, kShareOfWritten);
  if (!outcome.report)
    return std::nullopt;
  result.file = outcome.report->file;
  result.objective = objectiveName(options.objective);
  result.plan = figuresOf(*outcome.report);
  // Plans that are written (`--opt=none`) are compared by the objective, too.
  result.value = objectiveTime(result.plan, options.objective);
  if (!result.plan.fits)
    return std::move(result);
  result.notes = findStepNotes(*outcome.report);
  addWrittenPins();
  addUnfusedLosses();
  addPadding(*outcome.report);
  result.suspects = candidates.size();
  tryAll();
  for (Candidate &candidate : candidates)
    keep(candidate);
  llvm::stable_sort(result.findings,
                    [](const LintFinding &a, const LintFinding &b) {
                      return a.fix.saves > b.fix.saves;
                    });
  result.complete = runner.isComplete();
  return std::move(result);
}

std::optional<Lint> shardc::lint(const ProgramText &text, MLIRContext *context,
                                 const PlanOptions &options,
                                 TrialRunner &runner) {
  context->getOrLoadDialect<ShdDialect>();
  // What is wrong with the program is for the compiler to say.
  ScopedDiagnosticHandler silence(context, [](Diagnostic &) {});
  std::optional<Program> program = importStep(text, context);
  if (!program)
    return std::nullopt;
  return Linter(text, *program, options, runner).run();
}
