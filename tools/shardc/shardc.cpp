//===- shardc.cpp - The command-line driver -------------------------------===//
//
// Reads options, runs the stages that they ask for, and turns the outcome into
// an exit status. Holds no logic of the compiler.
//
//===----------------------------------------------------------------------===//

#include "Catalogue.h"
#include "ConfigProgram.h"
#include "DiagnosticPrinter.h"
#include "FrameworkProgram.h"
#include "OutputFile.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "mlir/Support/ToolUtilities.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Export/Jax.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Frontend/RollLayers.h"
#include "shardc/Pictures/Pictures.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Pipelines/Pipelines.h"
#include "shardc/PlanText/WritePlan.h"
#include "shardc/Questions/ChoiceAhead.h"
#include "shardc/Questions/Diff.h"
#include "shardc/Questions/Evaluator.h"
#include "shardc/Questions/FullReport.h"
#include "shardc/Questions/MeshChoice.h"
#include "shardc/Questions/PlanFile.h"
#include "shardc/Questions/Questions.h"
#include "shardc/Questions/Serving.h"
#include "shardc/Questions/ServingSweep.h"
#include "shardc/Questions/StepChoice.h"
#include "shardc/Report/Report.h"
#include "shardc/Report/Units.h"
#include "shardc/Terminal/Interrupt.h"
#include "shardc/Terminal/ProgressLine.h"
#include "shardc/Verify/Serving.h"
#include "shardc/Verify/Verify.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/WithColor.h"
#include <cmath>

using namespace llvm;
using namespace mlir;
using namespace shardc;

namespace {

/// Part of a time limit for the choices before a question about many plans.
static constexpr double kShareOfChoice = 0.4;

/// Exit statuses: docs/Language.md#13-diagnostics-and-exit-status.
enum ExitStatus {
  Success = 0,
  InputError = 1,
  CommandLineError = 2,
  NoPlanFits = 3,
  /// A finding of `--lint=error`, or a difference of `--verify`, which is
  /// printed: 1 to a shell.
  Finding = 0x100 | InputError,
  /// As a shell has it of a program that SIGINT ended.
  Interrupted = 130,
  InternalError = 70,
};

/// Colours on terminals that have them, unless NO_COLOR is set (no-color.org).
bool wantsColour(bool terminalHasColours) {
  std::optional<std::string> noColour = sys::Process::GetEnv("NO_COLOR");
  return terminalHasColours && (!noColour || noColour->empty());
}

/// What reports and errors call a file of the command line.
std::string nameOf(StringRef path) {
  return path == "-" ? "<stdin>" : path.str();
}

/// True of configs and reports, whatever their name: no program opens with a
/// brace.
bool isJson(StringRef path, StringRef text) {
  return path.ends_with(".json") || text.ltrim().starts_with("{");
}

/// Opens a file or standard input. A byte order mark, which some editors write,
/// is no part of JSON; that of a program is the frontend's to skip.
std::unique_ptr<MemoryBuffer> openText(StringRef path, std::string &message) {
  std::unique_ptr<MemoryBuffer> buffer = openInputFile(path, &message);
  StringRef text = buffer ? buffer->getBuffer() : "";
  if (!text.consume_front("\xef\xbb\xbf") || !isJson(path, text))
    return buffer;
  return MemoryBuffer::getMemBufferCopy(text, buffer->getBufferIdentifier());
}

enum class Rounding { Exact, Declared };
enum class LintLevel { Report, Error };
/// A picture drawn from the JSON report.
enum class Picture { Page, Trace };
enum class Emit {
  Cost,
  Json,
  Program,
  Ast,
  Mlir,
  Ir,
  Spmd,
  Plan,
  Jax,
  Csv,
  Problem
};

cl::OptionCategory emitCategory("1. What to emit");
cl::OptionCategory planCategory("2. How to plan");
cl::OptionCategory questionCategory("3. Questions about many plans");
cl::OptionCategory otherCategory("4. Other");

/// Parses one of some names, and suggests the nearest for another one.
template <typename T> class NameParser : public cl::parser<T> {
public:
  using cl::parser<T>::parser;

  bool parse(cl::Option &option, StringRef, StringRef given, T &value) {
    SmallVector<StringRef> names;
    for (const auto &each : this->Values) {
      if (!each.Name.empty())
        names.push_back(each.Name);
      if (each.Name != given)
        continue;
      value = each.V.getValue();
      return false;
    }
    StringRef near = nearestName(given, names, kMostEdits);
    return option.error("unknown value '" + given + "'; " +
                        (near.empty()
                             ? "expected one of " + llvm::join(names, ", ")
                             : "did you mean '" + near.str() + "'?"));
  }

private:
  static constexpr unsigned kMostEdits = 3;
};
template <typename T> using NameOption = cl::opt<T, false, NameParser<T>>;

/// What the command line says.
struct Options {
  cl::opt<std::string> input{cl::Positional,
                             cl::desc("<FILE.shd, config.json, or - >"),
                             cl::cat(otherCategory)};
  cl::opt<std::string> output{
      "o", cl::desc("Print to FILE instead of standard output"),
      cl::value_desc("FILE"), cl::init("-"), cl::cat(emitCategory)};
  cl::opt<Emit> emit{
      cl::desc("What to print:"), cl::init(Emit::Cost), cl::cat(emitCategory),
      cl::values(
          clEnumValN(Emit::Cost, "emit-cost",
                     "The cost report for people (default)"),
          clEnumValN(Emit::Json, "emit-json", "The same report as JSON"),
          clEnumValN(Emit::Program, "emit-program",
                     "The program itself: of a config.json, as it was read"),
          clEnumValN(Emit::Ast, "emit-ast", "The parsed program"),
          clEnumValN(Emit::Mlir, "emit-mlir",
                     "The program in the shd dialect, before any sharding "
                     "decision"),
          clEnumValN(Emit::Ir, "emit-ir",
                     "The planned program: shardings, collectives and costs"),
          clEnumValN(Emit::Plan, "emit-plan",
                     "The program text with every @ filled in"),
          clEnumValN(Emit::Spmd, "emit-spmd",
                     "The per-device program: local shapes and explicit "
                     "collectives"),
          clEnumValN(
              Emit::Jax, "emit-jax",
              "The plan as a Python program for JAX, which checks itself"),
          clEnumValN(Emit::Problem, "emit-problem",
                     "The optimization problem for the least upper time, in "
                     "the contest's JSON that shardc-solve reads"),
          clEnumValN(Emit::Csv, "emit-csv",
                     "A line of figures for each point of --sweep"))};

  cl::opt<Picture> picture{
      cl::desc("What to draw from the JSON report:"), cl::init(Picture::Page),
      cl::cat(emitCategory),
      cl::values(clEnumValN(Picture::Page, "emit-html",
                            "The report as a page with charts, in one file"),
                 clEnumValN(Picture::Trace, "emit-trace",
                            "The timeline as trace events, for Perfetto"))};
  cl::opt<Framework> config{
      "emit-config",
      cl::desc("The options with which a framework runs the plan:"),
      cl::init(Framework::Megatron), cl::cat(emitCategory),
      cl::values(
          clEnumValN(Framework::Megatron, "megatron",
                     "Arguments of Megatron-LM"),
          clEnumValN(Framework::Torchtitan, "torchtitan",
                     "A Python function for torchtitan"),
          clEnumValN(Framework::MaxText, "maxtext", "YAML for MaxText"))};

  cl::opt<bool> timeline{
      "timeline",
      cl::desc("Add a timeline of compute and of each network to the report"),
      cl::cat(emitCategory)};

  NameOption<OptMode> opt{
      "opt", cl::desc("How to choose shardings that the program leaves open:"),
      cl::init(OptMode::Optimize), cl::cat(planCategory),
      cl::values(
          clEnumValN(OptMode::Optimize, "optimize",
                     "The least estimated time that fits in memory "
                     "(default)"),
          clEnumValN(OptMode::Propagate, "propagate",
                     "Spread annotations through the program, search nothing"),
          clEnumValN(OptMode::None, "none",
                     "Only the annotated shardings; all else is whole"))};
  NameOption<Objective> objective{
      "objective", cl::desc("The time to minimise:"),
      cl::init(Objective::Scheduled), cl::cat(planCategory),
      cl::values(clEnumValN(Objective::Scheduled, "scheduled",
                            "As scheduled (default)"),
                 clEnumValN(Objective::Upper, "upper", "Nothing overlaps"),
                 clEnumValN(Objective::Lower, "lower", "Perfect overlap"))};
  cl::opt<std::string> hardware{
      "hardware", cl::desc("Replace the program's hardware declaration"),
      cl::value_desc("tpu_v5p[8, 8, 16]"), cl::cat(planCategory)};
  cl::opt<std::string> mesh{
      "mesh", cl::desc("Replace the program's mesh declaration"),
      cl::value_desc("[X=8, Y=8 on y] or auto"), cl::cat(planCategory)};
  cl::list<std::string> dims{"dim", cl::desc("Replace the definition of a dim"),
                             cl::value_desc("B=64"), cl::cat(planCategory)};
  cl::opt<double> timeLimit{"time-limit",
                            cl::desc("Search for at most S seconds"),
                            cl::value_desc("S"), cl::cat(planCategory)};
  cl::opt<unsigned> jobs{
      "jobs",
      cl::desc("Threads for questions about many plans and for mesh auto (all "
               "cores by default); the result does not depend on their number"),
      cl::value_desc("N"),
      cl::init(llvm::hardware_concurrency().compute_thread_count()),
      cl::cat(planCategory)};
  cl::opt<std::string> planFile{
      "plan",
      cl::desc("Take the shardings of a plan: a program as --emit-plan prints "
               "it, or the JSON of a report"),
      cl::value_desc("FILE"), cl::cat(planCategory)};
  NameOption<PlanFileUse> planAs{
      "plan-as", cl::desc("How to use --plan:"), cl::init(PlanFileUse::Pins),
      cl::cat(planCategory),
      cl::values(
          clEnumValN(
              PlanFileUse::Pins, "pins",
              "Its shardings are constraints; the rest is searched (default)"),
          clEnumValN(PlanFileUse::Start, "start",
                     "The search starts from it: the result is never slower"))};
  cl::list<std::string> freed{
      "free",
      cl::desc("Leave open --plan's shardings of tensors whose name matches"),
      cl::value_desc("'W*'"), cl::cat(planCategory)};
  NameOption<RollLayers> rollLayers{
      "roll-layers",
      cl::desc("Read layers that are written out alike as one repeat, with one "
               "sharding for all:"),
      cl::init(RollLayers::Auto), cl::cat(planCategory),
      cl::values(
          clEnumValN(RollLayers::Auto, "auto", "In large programs (default)"),
          clEnumValN(RollLayers::On, "on", "Always"),
          clEnumValN(RollLayers::Off, "off",
                     "Never: each layer has shardings of its own"))};
  NameOption<Framework> within{
      "for", cl::desc("Plan a training step only as a framework can run it:"),
      cl::init(Framework::Megatron), cl::cat(planCategory),
      cl::values(clEnumValN(Framework::Megatron, "megatron", "Megatron-LM"),
                 clEnumValN(Framework::Torchtitan, "torchtitan", "torchtitan"),
                 clEnumValN(Framework::MaxText, "maxtext", "MaxText"))};
  cl::opt<std::string> fromConfig{
      "from-config",
      cl::desc("Plan as the options of a framework say: a file of flags for "
               "Megatron-LM, of Python for torchtitan or of YAML for MaxText"),
      cl::value_desc("FILE"), cl::cat(planCategory)};
  cl::opt<bool> allowPadding{
      "allow-padding",
      cl::desc("Allow axes that do not divide the extents they split"),
      cl::cat(planCategory)};
  cl::opt<bool> calibrated{
      "calibrated",
      cl::desc("Plan by the times that the machine reaches in practice, as its "
               "calibration says"),
      cl::cat(planCategory)};
  cl::opt<std::string> memoryLimit{
      "memory-limit",
      cl::desc("Memory of a device that the plan may use, such as 12GB "
               "(default: all of it)"),
      cl::value_desc("BYTES"), cl::cat(planCategory)};

  cl::list<std::string> sweep{
      "sweep",
      cl::desc("Plan at several values of a dim, a mesh axis or hardware: 'B "
               "in 64, 128', 'B in 64..4096 * 2', 'B in 64..4096 + 64', "
               "'hardware in tpu_v5e[4, 4], h100[2, 8]'; repeated, a grid"),
      cl::value_desc("NAME in VALUES"), cl::cat(questionCategory)};
  cl::opt<std::string> targetTime{
      "target-time",
      cl::desc("Pick the cheapest point of --sweep whose step takes at most "
               "this time (seconds, or '20 ms'), and print the frontier of "
               "time against price"),
      cl::value_desc("SECONDS"), cl::cat(questionCategory)};
  cl::opt<std::string> targetFirst{
      "target-first",
      cl::desc("Of a program that serves: the first token takes at most this "
               "time (seconds, or '500 ms')"),
      cl::value_desc("SECONDS"), cl::cat(questionCategory)};
  NameOption<shd::ServingPhase> phase{
      "phase", cl::desc("Of a program that serves, plan one phase by itself:"),
      cl::init(shd::ServingPhase::Decode), cl::cat(planCategory),
      cl::values(clEnumValN(shd::ServingPhase::Prefill, "prefill",
                            "Prefill of the prompts"),
                 clEnumValN(shd::ServingPhase::Decode, "decode",
                            "One token of each sequence"))};
  cl::opt<std::string> measuredStep{
      "measured-step",
      cl::desc("Report MFU, HFU and tokens per second of a step that took "
               "this time in practice (seconds, or '20 ms')"),
      cl::value_desc("SECONDS"), cl::cat(questionCategory)};
  cl::opt<std::string> targetPrice{
      "target-price",
      cl::desc("Pick the fastest point of --sweep whose step costs at most "
               "this much"),
      cl::value_desc("USD"), cl::cat(questionCategory)};
  cl::opt<std::string> crossover{
      "crossover",
      cl::desc("Find where in a range the bottlenecks, the plan or its fit in "
               "memory change: 'B in 1..1048576'"),
      cl::value_desc("NAME in RANGE"), cl::cat(questionCategory)};
  cl::opt<std::string> explain{
      "explain",
      cl::desc("Explain a tensor's sharding, or microbatches, remat, schedule "
               "or the axis of stages: plan again with each other one, and "
               "show which @ bind and whether memory does"),
      cl::value_desc("NAME"), cl::cat(questionCategory)};
  cl::opt<bool> memoryCurve{"memory-curve",
                            cl::desc("Plan with less and with more memory per "
                                     "device, and show the time of each step"),
                            cl::cat(questionCategory)};
  NameOption<LintLevel> lint{
      "lint",
      cl::ValueOptional,
      cl::desc("Find work that the plan does in vain, and try what helps:"),
      cl::init(LintLevel::Report),
      cl::cat(questionCategory),
      cl::values(
          clEnumValN(LintLevel::Report, "", "Report it"),
          clEnumValN(LintLevel::Report, "report", "Report it"),
          clEnumValN(
              LintLevel::Error, "error",
              "Report it, and exit with status 1 if there is a finding"))};
  cl::opt<std::string> diff{
      "diff",
      cl::desc("Compare the plans of A and FILE, programs or JSON reports: "
               "which tensors moved, and the cost of each difference"),
      cl::value_desc("A"), cl::cat(questionCategory)};
  cl::opt<bool> verify{
      "verify",
      cl::desc("Run the plan, with dimensions shrunk, on every device of a "
               "small mesh, and compare with the unsharded program"),
      cl::cat(questionCategory)};
  NameOption<Rounding> rounding{
      "rounding", cl::desc("Arithmetic of --verify:"),
      cl::init(Rounding::Exact), cl::cat(questionCategory),
      cl::values(clEnumValN(Rounding::Exact, "exact",
                            "Double precision: results must agree (default)"),
                 clEnumValN(Rounding::Declared, "declared",
                            "Each value rounded to its type: measures what "
                            "the order of sums changes"))};

  NameOption<import::Task> task{
      "task", cl::desc("With a config.json, how the model is used:"),
      cl::init(import::Task::Train), cl::cat(planCategory),
      cl::values(
          clEnumValN(import::Task::Train, "train", "A training step (default)"),
          clEnumValN(import::Task::Forward, "forward",
                     "A forward pass and its loss"),
          clEnumValN(import::Task::Decode, "decode",
                     "The next token of each sequence"),
          clEnumValN(import::Task::Serve, "serve", "Prefill and decoding"))};
  cl::opt<int64_t> batch{
      "batch", cl::desc("With a config.json: sequences of a step (256)"),
      cl::value_desc("N"), cl::init(256), cl::cat(planCategory)};
  cl::opt<int64_t> sequence{
      "sequence",
      cl::desc("With a config.json: tokens of a sequence, the length of the "
               "cache with --task=decode and serve (4096, or as many as the "
               "model has positions for)"),
      cl::value_desc("N"), cl::cat(planCategory)};
  cl::opt<int64_t> generate{
      "generate",
      cl::desc("With a config.json and --task=serve: tokens of --sequence that "
               "a request generates, the others are its prompt (an eighth)"),
      cl::value_desc("N"), cl::cat(planCategory)};

  cl::opt<std::string> listHardware{
      "list-hardware", cl::ValueOptional,
      cl::desc("Print the hardware catalogue, or one machine of it"),
      cl::value_desc("NAME"), cl::cat(otherCategory)};

  cl::opt<bool> splitInputFile{"split-input-file", cl::Hidden,
                               cl::desc("Process each part of the input, "
                                        "between lines of // -----, by itself"),
                               cl::cat(otherCategory)};
  cl::opt<bool> verifyDiagnostics{
      "verify-diagnostics", cl::Hidden,
      cl::desc("Check diagnostics against expected-* comments"),
      cl::cat(otherCategory)};

  Overrides overrides() const {
    Overrides result;
    if (hardware.getNumOccurrences())
      result.hardware = hardware;
    if (mesh.getNumOccurrences())
      result.mesh = mesh;
    result.dims.assign(dims.begin(), dims.end());
    result.allowPadding = allowPadding;
    result.calibrated = calibrated;
    if (phase.getNumOccurrences())
      result.phase = phase;
    return result;
  }

  ServingOptions serving() const {
    ServingOptions result;
    result.plan = plan();
    if (targetTime.getNumOccurrences())
      result.targets.tokenSeconds = parseSeconds(targetTime);
    if (targetFirst.getNumOccurrences())
      result.targets.firstSeconds = parseSeconds(targetFirst);
    result.file = name();
    result.jobs = jobs;
    result.showProgress = sys::Process::StandardErrIsDisplayed();
    return result;
  }

  PlanOptions plan() const {
    PlanOptions result;
    result.mode = opt;
    result.objective = objective;
    if (timeLimit.getNumOccurrences())
      result.timeLimitSeconds = timeLimit;
    if (memoryLimit.getNumOccurrences())
      result.memoryLimit = parseBytes(memoryLimit);
    return result;
  }

  Questions questions() const {
    Questions result;
    result.sweeps.assign(sweep.begin(), sweep.end());
    if (crossover.getNumOccurrences())
      result.crossover = crossover;
    if (explain.getNumOccurrences())
      result.explain = explain;
    result.memoryCurve = memoryCurve;
    if (targetTime.getNumOccurrences())
      result.targets.seconds = parseSeconds(targetTime);
    if (targetPrice.getNumOccurrences())
      result.targets.usd = parseUsd(targetPrice);
    result.lint = lint.getNumOccurrences() > 0;
    result.file = name();
    result.plan = plan();
    result.format = emit == Emit::Json  ? SweepFormat::Json
                    : emit == Emit::Csv ? SweepFormat::Csv
                                        : SweepFormat::Table;
    result.jobs = jobs;
    result.colour = wantsColour();
    result.showProgress = sys::Process::StandardErrIsDisplayed();
    return result;
  }

  /// What reports call the program.
  std::string name() const { return nameOf(input); }
  bool wantsColour() const {
    return output == "-" && ::wantsColour(sys::Process::StandardOutHasColors());
  }
  bool emitsReport() const { return emit == Emit::Cost || emit == Emit::Json; }
  bool asks() const { return !question().empty(); }
  /// The flag that asks about many plans; empty: none.
  StringRef question() const {
    return sweep.getNumOccurrences()       ? "--sweep"
           : crossover.getNumOccurrences() ? "--crossover"
           : explain.getNumOccurrences()   ? "--explain"
           : memoryCurve                   ? "--memory-curve"
           : lint.getNumOccurrences()      ? "--lint"
           : diff.getNumOccurrences()      ? "--diff"
                                           : "";
  }

  /// The JSON report is drawn, not printed.
  bool draws() const {
    return picture.getNumOccurrences() || config.getNumOccurrences();
  }
  /// True if what is drawn is that of one plan.
  bool drawsOnePlan() const {
    return config.getNumOccurrences() ||
           (picture.getNumOccurrences() && picture == Picture::Trace);
  }
  StringRef drawing() const {
    return config.getNumOccurrences()  ? "--emit-config"
           : picture == Picture::Trace ? "--emit-trace"
                                       : "--emit-html";
  }
  /// Modules are recognised by their suffix; everything else is a program, or a
  /// config of a checkpoint.
  bool readsModule() const { return StringRef(input).ends_with(".mlir"); }
  bool readsConfig(StringRef text) const {
    return !readsModule() && isJson(input, text);
  }
  /// The input is a recorded report. A pipe can be read only once, and is none.
  bool isReport() const {
    std::string message;
    if (!sys::fs::is_regular_file(input))
      return false;
    std::unique_ptr<MemoryBuffer> buffer = openText(input, message);
    return buffer && isJsonReport(buffer->getBuffer());
  }
  import::ImportOptions importOptions(StringRef path) const {
    import::ImportOptions result;
    result.task = task;
    result.batch = batch;
    if (sequence.getNumOccurrences())
      result.sequence = sequence;
    if (generate.getNumOccurrences())
      result.generate = generate;
    result.hardware = hardware;
    result.file = sys::path::filename(nameOf(path)).str();
    return result;
  }
  bool overridesDeclarations() const {
    return hardware.getNumOccurrences() || mesh.getNumOccurrences() ||
           dims.getNumOccurrences() || allowPadding || calibrated;
  }
};

/// A text that is compiled, in a context of its own.
struct Source {
  /// `path` says where imports are looked for, whatever the buffer is called.
  Source(std::unique_ptr<MemoryBuffer> buffer, StringRef path)
      : context(MLIRContext::Threading::DISABLED) {
    manager.setIncludeDirs({sys::path::parent_path(path).str()});
    manager.AddNewSourceBuffer(std::move(buffer), SMLoc());
    // Diagnostics speak of the program, not of the operations made from it.
    context.printOpOnDiagnostic(false);
    context.loadDialect<shd::ShdDialect, spmd::SpmdDialect>();
  }

  SourceMgr manager;
  MLIRContext context;
};

/// Compiles the texts of one input and remembers the worst outcome.
class Driver {
public:
  /// `interrupted` ends searches.
  Driver(const Options &options, TimingScope &timing,
         const std::atomic<bool> &interrupted)
      : options(options), timing(timing), interrupted(interrupted),
        deadline(options.plan().timeLimitSeconds, &interrupted) {
    if (options.within.getNumOccurrences())
      within = options.within;
  }

  ExitStatus run(std::unique_ptr<MemoryBuffer> input, raw_ostream &os);
  /// Searches the plans of a framework alone.
  void searchWithin(Framework framework) { within = framework; }
  /// Begins or uses a search of a framework's plans beside the other one.
  void searchAhead(ChoiceAhead *choice) { ahead = choice; }
  /// `--diff`.
  ExitStatus diff(raw_ostream &os);

private:
  ExitStatus runBuffer(std::unique_ptr<MemoryBuffer> buffer, raw_ostream &os);
  ExitStatus checkConfigOptions(bool isConfig) const;
  std::unique_ptr<MemoryBuffer>
  withRolledLayers(std::unique_ptr<MemoryBuffer> text, StringRef path);
  ExitStatus compile(SourceMgr &sourceMgr, MLIRContext &context,
                     raw_ostream &os);
  ExitStatus verify(SourceMgr &sourceMgr, MLIRContext &context,
                    raw_ostream &os);
  PlanOptions planOptions() const;
  Questions questions() const;
  CompileOptions compileOptions();
  std::optional<Program> import(SourceMgr &sourceMgr, MLIRContext &context,
                                double share = 1);
  std::optional<Compilation> begin(SourceMgr &sourceMgr, MLIRContext &context);
  std::optional<PlanFile> readPlanFile();
  LogicalResult plan(Compilation &compilation);
  ExitStatus verifyServing(MLIRContext &context, const ProgramText &program,
                           const ServingPlan &plan, raw_ostream &os);
  ExitStatus exportServing(MLIRContext &context, const ProgramText &program,
                           const ServingPlan &plan, raw_ostream &os);
  LogicalResult addTimelines(MLIRContext &context, const ProgramText &program,
                             ServingPlan &plan);
  ExitStatus serve(SourceMgr &sourceMgr, MLIRContext &context,
                   const ProgramText &program, raw_ostream &os);
  ExitStatus report(SourceMgr &sourceMgr, Compilation &compilation,
                    raw_ostream &os);
  ExitStatus printProblem(Compilation &compilation, raw_ostream &os);
  LogicalResult printJax(ModuleOp imported, Compilation &compilation,
                         raw_ostream &os);
  ExitStatus verifyByRunning(Compilation &compilation, raw_ostream &os);
  ExitStatus answerQuestions(SourceMgr &sourceMgr, MLIRContext &context,
                             raw_ostream &os);
  std::variant<DiffInput, ExitStatus> readDiffInput(StringRef path,
                                                    bool isSecond);

  const Options &options;
  TimingScope &timing;
  const std::atomic<bool> &interrupted;
  /// The end of --time-limit, for all searches together.
  const solver::Deadline deadline;
  /// The framework whose plans are searched; none: all plans are.
  std::optional<Framework> within;
  ChoiceAhead *ahead = nullptr;
  /// What came of `--plan`.
  std::optional<Report::Given> given;
  /// Those of the options; where the program means `mesh auto` or `batch =
  /// auto`, with the mesh and the batch that were chosen.
  Overrides overrides;
  /// How they were chosen.
  std::optional<Report::BatchSearch> batchSearch;
  std::optional<Report::MeshSearch> meshSearch;
  /// How the open choices of a training step were made, and its plan.
  std::optional<Report::StepSearch> stepSearch;
  std::shared_ptr<const std::string> stepPlan;
  std::vector<solver::Label> stepLabels;
};

} // namespace

static ExitStatus commandLineError(const Twine &message) {
  errs() << "shardc: error: " << message << "\n";
  return CommandLineError;
}

/// What the options say in the language's syntax is no part of the program: an
/// error in it is one of the command line.
static bool overridesParse(const Options &options) {
  if (!options.overridesDeclarations())
    return true;
  SourceMgr sourceMgr;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DiagnosticPrinter printer(sourceMgr, &context);
  return checkOverrides(sourceMgr, &context, options.overrides());
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static void showProgress(ProgressLine &line,
                         const solver::SearchProgress &progress) {
  auto text = [](const std::optional<solver::Cost> &picoseconds) {
    return picoseconds.value_or(0) > 0
               ? std::optional(formatTime(double(*picoseconds) / 1e12))
               : std::nullopt;
  };
  std::optional<double> gap;
  if (progress.cost && progress.bound && *progress.bound > 0)
    gap = double(*progress.cost - *progress.bound) / double(*progress.bound);
  line.show(text(progress.cost), text(progress.bound), gap);
}

/// With the time that is left.
PlanOptions Driver::planOptions() const {
  PlanOptions result = options.plan();
  result.timeLimitSeconds = deadline.remaining();
  return result;
}

Questions Driver::questions() const {
  Questions result = options.questions();
  result.plan = planOptions();
  result.interrupted = &interrupted;
  result.start = stepLabels;
  return result;
}

/// Timing, options of MLIR, Ctrl-C, and on a terminal a line that tells how far
/// a search is.
CompileOptions Driver::compileOptions() {
  CompileOptions how{planOptions()};
  how.plan.priceMemory = options.emitsReport() && !options.verify;
  how.interrupted = &interrupted;
  how.configure = [this](PassManager &manager) {
    manager.enableTiming(timing);
    return applyPassManagerCLOptions(manager);
  };
  how.beginProgress = [] {
    auto line = std::make_shared<ProgressLine>(ProgressLine::isWanted());
    return [line](const solver::SearchProgress &progress) {
      showProgress(*line, progress);
    };
  };
  return how;
}

/// Imports the program on its mesh, or the one that is chosen for it; the
/// choice may take `share` of the time that is left.
std::optional<Program> Driver::import(SourceMgr &sourceMgr,
                                      MLIRContext &context, double share) {
  TimingScope nested = timing.nest("Read");
  MeshChoiceOptions how;
  const solver::Deadline end = deadline.part(share);
  how.plan = planOptions();
  how.plan.timeLimitSeconds = end.remaining();
  how.file = options.name();
  how.jobs = options.jobs;
  how.showProgress = sys::Process::StandardErrIsDisplayed();
  how.interrupted = &interrupted;
  how.framework = within;
  how.ahead = ahead;
  std::shared_ptr<const StepChoice> choice;
  std::optional<Program> program = importOnBestMesh(
      sourceMgr, &context, overrides, how, batchSearch, meshSearch, choice);
  if (!program || options.opt != OptMode::Optimize)
    return program;
  auto op = *program->module->getOps<shd::ProgramOp>().begin();
  // A framework's schedule is one of its choices.
  if (!isStepOpen(op) && !(within && choice)) {
    // The choice of the mesh has planned the step as it is written.
    if (choice)
      stepPlan = choice->plan;
    return program;
  }
  how.plan.timeLimitSeconds = end.remaining();
  if (how.plan.timeLimitSeconds) // and no other limit of forms
    how.stepWork = std::numeric_limits<double>::infinity();
  if (!choice)
    if (std::optional<StepChoice> found = chooseStep(sourceMgr, overrides, how))
      choice = std::make_shared<const StepChoice>(std::move(*found));
  if (!choice) // the compiler says why
    return program;
  overrides.step = choice->form;
  stepSearch = choice->search;
  stepPlan = choice->plan;
  stepLabels = choice->labels;
  // Warnings have been given.
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  return importStep(sourceMgr, &context, overrides);
}

/// Reads a module, or imports a program.
std::optional<Compilation> Driver::begin(SourceMgr &sourceMgr,
                                         MLIRContext &context) {
  if (!options.readsModule()) {
    std::optional<Program> program = import(sourceMgr, context);
    if (!program)
      return std::nullopt;
    CompileOptions how = compileOptions();
    // Whoever starts from a plan searches in any case; JAX wants another order
    // of positions than the plan may have.
    if (!options.planFile.getNumOccurrences() && options.emit != Emit::Jax)
      how.knownPlan = stepPlan;
    return Compilation(std::move(*program), std::move(how));
  }
  TimingScope nested = timing.nest("Read");
  DialectRegistry registry;
  registerCatalogue(registry);
  context.appendDialectRegistry(registry);
  auto module = parseSourceFile<ModuleOp>(sourceMgr, &context);
  if (!module)
    return std::nullopt;
  Compilation::Stage stage = Compilation::stageOf(*module);
  return Compilation(std::move(module), stage, compileOptions());
}

/// What `--plan` names; nothing after an error.
std::optional<PlanFile> Driver::readPlanFile() {
  StringRef path = options.planFile;
  std::string message;
  std::unique_ptr<MemoryBuffer> buffer = openText(path, message);
  if (!buffer) {
    errs() << path << ": error: " << message << "\n";
    return std::nullopt;
  }
  if (isJson(path, buffer->getBuffer())) {
    std::optional<PlanFile> plan =
        readPlanJson(buffer->getBuffer(), path.str(), message);
    if (!plan)
      errs() << path << ": error: " << message << "\n";
    return plan;
  }
  Source source(std::move(buffer), path);
  DiagnosticPrinter printer(source.manager, &source.context);
  Overrides overrides;
  overrides.allowPadding = options.allowPadding;
  overrides.calibrated = options.calibrated;
  std::optional<Compilation> plan =
      Compilation::import(source.manager, &source.context, overrides);
  if (!plan)
    return std::nullopt;
  return readPlanProgram(plan->program(), path.str());
}

/// Chooses a plan, with what `--plan` names.
LogicalResult Driver::plan(Compilation &compilation) {
  if (!options.planFile.getNumOccurrences())
    return compilation.plan();
  std::optional<PlanFile> file = readPlanFile();
  if (!file)
    return failure();
  given = planWithFile(compilation, *file, options.planAs, options.freed);
  return success(given.has_value());
}

/// Prints what was asked for of a planned program.
ExitStatus Driver::report(SourceMgr &sourceMgr, Compilation &compilation,
                          raw_ostream &os) {
  TimingScope nested = timing.nest("Report");
  ReportOptions how{options.name(), std::nullopt,
                    options.timeline || options.picture.getNumOccurrences()};
  if (options.measuredStep.getNumOccurrences())
    how.measuredStep = parseSeconds(options.measuredStep);
  std::optional<ReportedText> text;
  if (!options.readsModule())
    text.emplace(ReportedText{sourceMgr, overrides});
  std::optional<Report> report =
      options.emitsReport()
          ? buildFullReport(compilation, how, text, options.jobs)
          : buildReport(compilation, how);
  if (!report)
    return InputError;
  report->given = given;
  report->batchSearch = batchSearch;
  if (stepSearch)
    addStepSearch(*report, *stepSearch);
  if (meshSearch)
    addMeshSearch(*report, *meshSearch);
  Location peakLoc = compilation.schedule()->memory.peakLoc;
  if (options.emit == Emit::Spmd &&
      (failed(compilation.markRings()) || failed(compilation.convertToSpmd())))
    return InputError;
  if (options.emit == Emit::Spmd || options.emit == Emit::Ir)
    compilation.module()->print(os);
  else if (options.emit == Emit::Json)
    printJson(os, *report);
  else if (options.emit == Emit::Cost)
    printText(os, *report, options.wantsColour());
  return succeeded(checkFits(*report, peakLoc)) ? Success : NoPlanFits;
}

/// `--emit-problem`.
ExitStatus Driver::printProblem(Compilation &compilation, raw_ostream &os) {
  if (failed(compilation.prepareNetwork()) ||
      failed(shardc::printProblem(os, compilation.program(),
                                  options.plan().memoryLimit)))
    return InputError;
  return Success;
}

/// `--emit-jax`.
LogicalResult Driver::printJax(ModuleOp imported, Compilation &compilation,
                               raw_ostream &os) {
  TimingScope nested = timing.nest("Export");
  if (failed(compilation.markRings()))
    return failure();
  bool inStages = compilation.program().getPipeline().has_value();
  const StagePlan *stages = inStages ? compilation.stages() : nullptr;
  if (inStages && !stages)
    return failure();
  auto programOf = [](ModuleOp module) {
    return *module.getOps<shd::ProgramOp>().begin();
  };
  ModuleOp forward = compilation.forward();
  return exportJax(os, programOf(imported), compilation.program(),
                   forward ? programOf(forward) : shd::ProgramOp(), stages);
}

/// `--verify`.
ExitStatus Driver::verifyByRunning(Compilation &compilation, raw_ostream &os) {
  OwningOpRef<ModuleOp> imported = compilation.clone();
  if (failed(plan(compilation)))
    return InputError;
  TimingScope nested = timing.nest("Verify");
  VerifyOptions how;
  how.roundToDeclared = options.rounding == Rounding::Declared;
  how.gradients = true;
  FailureOr<Verification> verification =
      verifyPlan(*imported, compilation, how);
  if (failed(verification))
    return InputError;
  emitDifferences(*verification);
  auto print =
      options.emit == Emit::Json ? printVerificationJson : printVerification;
  print(os, *verification, options.name());
  return verification->holds ? Success : Finding;
}

/// Targets of a program that does not serve are those of a sweep's points.
static ExitStatus checkTargetsOfSteps(const Options &options) {
  if (options.targetFirst.getNumOccurrences())
    return commandLineError("--target-first expects a program with a `serve` "
                            "block");
  for (const cl::opt<std::string> *target :
       {&options.targetTime, &options.targetPrice})
    if (target->getNumOccurrences() && !options.sweep.getNumOccurrences())
      return commandLineError("--" + target->ArgStr + " expects --sweep");
  return Success;
}

/// True if the program may have a `serve` block.
static bool mayServe(const SourceMgr &sourceMgr) {
  return sourceMgr.getMemoryBuffer(sourceMgr.getMainFileID())
      ->getBuffer()
      .contains("serve");
}

namespace {
/// A phase as it was imported, and with its plan.
struct PhaseModules {
  OwningOpRef<ModuleOp> whole;
  std::optional<Compilation> planned;

  shd::ProgramOp wholeProgram() {
    return *whole->getOps<shd::ProgramOp>().begin();
  }
};
} // namespace

/// Imports a phase and gives it the plan that was chosen.
static LogicalResult planPhase(MLIRContext &context, const ProgramText &program,
                               const ServingPlan &plan, CompileOptions how,
                               shd::ServingPhase phase, PhaseModules &result) {
  std::optional<Program> imported =
      importStep(program, &context, phasePoint(plan, {}, phase));
  if (!imported)
    return failure();
  const Outcome &chosen = plan.of(phase);
  how.knownPlan = chosen.plan;
  how.plan.memoryLimit = chosen.report->memory.limit;
  result.planned.emplace(std::move(*imported), std::move(how));
  result.whole = result.planned->clone();
  return result.planned->plan();
}

/// Verifies the plans of both phases, each against the whole program of its
/// phase, and both one after the other against the program run token by token.
ExitStatus Driver::verifyServing(MLIRContext &context,
                                 const ProgramText &program,
                                 const ServingPlan &plan, raw_ostream &os) {
  bool holds = true;
  VerifyOptions how;
  how.roundToDeclared = options.rounding == Rounding::Declared;
  PhaseModules phases[2];
  OwningOpRef<ModuleOp> planned[2];
  for (auto phase : {shd::ServingPhase::Prefill, shd::ServingPhase::Decode}) {
    PhaseModules &modules = phases[size_t(phase)];
    if (failed(planPhase(context, program, plan, compileOptions(), phase,
                         modules)))
      return InputError;
    FailureOr<Verification> verification =
        verifyPlan(*modules.whole, *modules.planned, how);
    if (failed(verification))
      return InputError;
    emitDifferences(*verification);
    printVerification(os, *verification,
                      options.name() + ", " + shd::stringify(phase).str());
    os << '\n';
    holds &= verification->holds;
    planned[size_t(phase)] = modules.planned->takeModule();
  }
  auto phaseOf = [&](shd::ServingPhase phase) {
    return ServedPhase{*phases[size_t(phase)].whole, *planned[size_t(phase)]};
  };
  FailureOr<ServedRuns> runs =
      shardc::verifyServing(phaseOf(shd::ServingPhase::Prefill),
                            phaseOf(shd::ServingPhase::Decode), how);
  if (failed(runs))
    return InputError;
  emitDifferences(*runs);
  printServedRuns(os, *runs, options.name() + ", prefill and then decoding");
  return holds && runs->holds() ? Success : Finding;
}

/// `--emit-jax` of both phases.
ExitStatus Driver::exportServing(MLIRContext &context,
                                 const ProgramText &program,
                                 const ServingPlan &plan, raw_ostream &os) {
  PhaseModules phases[2];
  for (auto phase : {shd::ServingPhase::Prefill, shd::ServingPhase::Decode}) {
    PhaseModules &modules = phases[size_t(phase)];
    if (failed(planPhase(context, program, plan, compileOptions(), phase,
                         modules)) ||
        failed(modules.planned->markRings()))
      return InputError;
  }
  PhaseModules &prefill = phases[size_t(shd::ServingPhase::Prefill)],
               &decode = phases[size_t(shd::ServingPhase::Decode)];
  if (failed(exportJaxServing(
          os, {prefill.wholeProgram(), prefill.planned->program(),
               decode.wholeProgram(), decode.planned->program()})))
    return InputError;
  return Success;
}

/// False after errors that a phase has of its own, such as of its machine or of
/// what does not divide its extents.
static bool importsPhase(MLIRContext &context, const ProgramText &program,
                         const shd::Serving &serving, shd::ServingPhase phase) {
  // Warnings were printed when the program was imported as it is written.
  ScopedDiagnosticHandler errorsAlone(&context, [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  if (importStep(program, &context, {phaseSetting(phase)}))
    return true;
  SmallVector<std::string> extents;
  for (const auto &[name, extent] : serving.extentsOf(phase))
    extents.push_back(name + " = " + std::to_string(extent));
  errs() << "note: in " << shd::stringify(phase) << ", where "
         << llvm::join(extents, ", ") << "\n";
  return false;
}

/// Gives the reports of both phases their timelines.
LogicalResult Driver::addTimelines(MLIRContext &context,
                                   const ProgramText &program,
                                   ServingPlan &plan) {
  for (auto phase : {shd::ServingPhase::Prefill, shd::ServingPhase::Decode}) {
    PhaseModules modules;
    if (failed(planPhase(context, program, plan, compileOptions(), phase,
                         modules)))
      return failure();
    std::optional<Report> report = buildReport(
        *modules.planned, {options.name(), std::nullopt, /*timeline=*/true});
    if (!report)
      return failure();
    plan.of(phase).report = std::move(report);
  }
  return success();
}

/// Answers for both phases of a program that serves.
ExitStatus Driver::serve(SourceMgr &sourceMgr, MLIRContext &context,
                         const ProgramText &program, raw_ostream &os) {
  TimingScope nested = timing.nest("Serve");
  bool sweeps = options.sweep.getNumOccurrences();
  if (options.emit == Emit::Plan)
    return commandLineError("--emit-plan of a program with a `serve` block is "
                            "not supported yet: its plan is two");
  if (options.targetPrice.getNumOccurrences())
    return commandLineError(
        "--target-price expects a program without a `serve` block; the pair of "
        "the least price within --target-time and --target-first is chosen");
  if ((options.asks() && !sweeps) || options.drawsOnePlan() ||
      options.planFile.getNumOccurrences() ||
      options.measuredStep.getNumOccurrences() ||
      (!options.emitsReport() && options.emit != Emit::Csv &&
       options.emit != Emit::Jax) ||
      (options.emit == Emit::Jax && sweeps) ||
      (options.verify && options.emit != Emit::Cost))
    return commandLineError(
        "the program has a `serve` block, so that its plan is two; "
        "--phase=prefill or --phase=decode takes one of them for this");
  std::optional<Program> written = importProgram(program, &context);
  if (!written)
    return InputError;
  std::optional<shd::Serving> serving =
      shd::Serving::of(*written->module->getOps<shd::ProgramOp>().begin());
  ServingOptions how = options.serving();
  how.interrupted = &interrupted;
  SweepFormat format = options.questions().format;
  if (sweeps) {
    Questions questions = options.questions();
    switch (answerServingSweep(os, questions, how, program, &context)) {
    case Answer::Printed:
      return Success;
    case Answer::NoneMeets:
      return NoPlanFits;
    case Answer::WrongQuestion:
      return CommandLineError;
    default:
      return InputError;
    }
  }
  ServingOutcome outcome = planServing(program, {}, how);
  if (!outcome.plan) {
    for (auto phase : {shd::ServingPhase::Prefill, shd::ServingPhase::Decode})
      if (!importsPhase(context, program, *serving, phase))
        return InputError;
    errs() << (outcome.loc.empty() ? options.name() : outcome.loc)
           << ": error: " << outcome.error << "\n";
    return InputError;
  }
  ServingPlan &plan = *outcome.plan;
  if ((options.timeline || options.picture.getNumOccurrences()) &&
      failed(addTimelines(context, program, plan)))
    return InputError;
  if (options.verify)
    return verifyServing(context, program, plan, os);
  if (options.emit == Emit::Jax) {
    if (ExitStatus status = exportServing(context, program, plan, os))
      return status;
  } else if (format == SweepFormat::Json)
    printServingJson(os, plan);
  else
    printServing(os, plan, options.wantsColour());
  if (!plan.fits()) {
    const Outcome &phase =
        plan.decode.report->fits() ? plan.prefill : plan.decode;
    errs() << (phase.loc.empty() ? options.name() : phase.loc) << ": error: "
           << (&phase == &plan.prefill ? "prefill beside decode's caches: "
                                       : "decode: ")
           << phase.error << "\n";
    return NoPlanFits;
  }
  if (plan.meets(how.targets))
    return Success;
  errs() << options.name() << ": error: no pair of plans was found within the "
         << "targets; the best takes " << formatTime(plan.firstToken())
         << " to the first token and " << formatTime(plan.token())
         << " for each further one\n";
  return NoPlanFits;
}

/// Questions about many plans.
ExitStatus Driver::answerQuestions(SourceMgr &sourceMgr, MLIRContext &context,
                                   raw_ostream &os) {
  TimingScope nested = timing.nest("Questions");
  std::optional<ProgramText> program =
      readProgram(sourceMgr, &context, overrides);
  if (!program)
    return InputError;
  if (program->serveBlock() && !overrides.phase)
    return serve(sourceMgr, context, *program, os);
  if (ExitStatus status = checkTargetsOfSteps(options))
    return status;
  // Points of a sweep choose their own meshes.
  bool isAuto = !program->meshDecl() || program->meshDecl()->isAuto ||
                program->hasTrainBlock() || program->hasPipeline();
  if (isAuto && !options.sweep.getNumOccurrences()) {
    if (!import(sourceMgr, context, kShareOfChoice))
      return InputError;
    // A crossover of the batch sets it itself.
    if (batchSearch && StringRef(options.crossover).trim().split(' ').first ==
                           batchSearch->dim)
      overrides.dims.pop_back();
    program = readProgram(sourceMgr, &context, overrides);
  }
  switch (answer(os, questions(), *program, &context)) {
  case Answer::Printed:
    return Success;
  case Answer::Findings:
    return options.lint == LintLevel::Error ? Finding : Success;
  case Answer::NoneMeets:
    return NoPlanFits;
  case Answer::WrongQuestion:
    return CommandLineError;
  case Answer::WrongMachine:
  case Answer::NoTime:
    return InputError;
  case Answer::WrongProgram:
  case Answer::NoPlanFits:
    // The compiler says why.
    return compile(sourceMgr, context, nulls());
  }
  llvm_unreachable("an answer");
}

/// Runs the stages up to what is to be emitted.
ExitStatus Driver::compile(SourceMgr &sourceMgr, MLIRContext &context,
                           raw_ostream &os) {
  if (options.emit == Emit::Ast) {
    std::unique_ptr<ast::File> file =
        parseFile(sourceMgr, sourceMgr.getMainFileID(), &context);
    if (!file)
      return InputError;
    ast::print(os, *file);
    return Success;
  }
  if (options.emit != Emit::Mlir && !options.readsModule() &&
      !overrides.phase && mayServe(sourceMgr)) {
    std::optional<ProgramText> program =
        readProgram(sourceMgr, &context, overrides);
    if (!program)
      return InputError;
    if (program->serveBlock())
      return serve(sourceMgr, context, *program, os);
  }
  if (ExitStatus status = checkTargetsOfSteps(options))
    return status;
  std::optional<Compilation> compilation = begin(sourceMgr, context);
  if (!compilation)
    return InputError;
  if (options.emit == Emit::Mlir) {
    compilation->module().walk(shd::removeSourceAttributes);
    compilation->module()->print(os);
    return Success;
  }
  if (options.emit == Emit::Problem)
    return printProblem(*compilation, os);
  if (options.verify)
    return verifyByRunning(*compilation, os);
  OwningOpRef<ModuleOp> imported;
  if (options.emit == Emit::Jax)
    imported = compilation->clone();
  if (failed(plan(*compilation)))
    return InputError;
  // The text is that of the plan before it is made explicit.
  if (options.emit == Emit::Plan &&
      failed(writePlan(os, compilation->source(), sourceMgr,
                       compilation->program(), overrides,
                       compilation->options().plan.memoryLimit)))
    return InputError;
  if (options.emit == Emit::Jax &&
      failed(printJax(*imported, *compilation, os)))
    return InputError;
  return report(sourceMgr, *compilation, os);
}

/// One of the two sides of `--diff`: a program, which is planned, or the JSON
/// of a report; or why there is none. --from-config is that of the second one.
std::variant<DiffInput, ExitStatus> Driver::readDiffInput(StringRef path,
                                                          bool isSecond) {
  std::string message;
  std::unique_ptr<MemoryBuffer> buffer = openText(path, message);
  if (!buffer)
    return commandLineError(message);
  if (isJson(path, buffer->getBuffer())) {
    std::optional<DiffInput> input =
        DiffInput::fromJson(buffer->getBuffer(), path.str(), message);
    if (input)
      return std::move(*input);
    errs() << path << ": error: " << message << "\n";
    return InputError;
  }
  overrides = options.overrides();
  Source source(withRolledLayers(std::move(buffer), path), path);
  DiagnosticPrinter printer(source.manager, &source.context);
  if (options.fromConfig.getNumOccurrences() && isSecond &&
      !applyFrameworkFile(options.fromConfig, source.manager, overrides))
    return InputError;
  std::optional<ProgramText> program =
      readProgram(source.manager, &source.context, overrides);
  if (!program)
    return InputError;
  PlanOptions how = planOptions();
  if (how.timeLimitSeconds && !isSecond)
    *how.timeLimitSeconds /= 2;
  Evaluator planner(*program, how, nameOf(path));
  planner.stopAt(&interrupted);
  Outcome outcome = planner.plan(Variant());
  if (outcome.report)
    return DiffInput(*outcome.report);
  // The compiler says why.
  return compile(source.manager, source.context, nulls());
}

/// The text in which layers that are written out alike are one repeat.
std::unique_ptr<MemoryBuffer>
Driver::withRolledLayers(std::unique_ptr<MemoryBuffer> text, StringRef path) {
  Source source(MemoryBuffer::getMemBuffer(text->getMemBufferRef()), path);
  std::optional<RolledProgram> rolled = rollLayers(
      text->getBuffer(), path, overrides, options.rollLayers, &source.context);
  if (!rolled)
    return text;
  errs() << nameOf(path) << ": note: "
         << join(map_range(rolled->layers,
                           [](size_t count) { return utostr(count); }),
                 " and ")
         << " layers that are written out alike are read as "
         << (rolled->layers.size() == 1 ? "one repeat" : "repeats")
         << ", with one sharding for all; lines and names are those of the "
            "program that --emit-program prints; --roll-layers=off keeps the "
            "layers apart\n";
  return MemoryBuffer::getMemBufferCopy(rolled->text,
                                        text->getBufferIdentifier());
}

/// Only a config has a task, a batch and a length to choose.
ExitStatus Driver::checkConfigOptions(bool isConfig) const {
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{
           &options.batch, &options.sequence, &options.generate, &options.task})
    if (option->getNumOccurrences() && !isConfig)
      return commandLineError("--" + option->ArgStr +
                              " expects a config.json, found '" +
                              options.input + "'");
  return Success;
}

ExitStatus Driver::diff(raw_ostream &os) {
  if (!overridesParse(options))
    return CommandLineError;
  if (ExitStatus status = checkConfigOptions(/*isConfig=*/false))
    return status;
  std::vector<DiffInput> inputs;
  for (StringRef path : {StringRef(options.diff), StringRef(options.input)}) {
    std::variant<DiffInput, ExitStatus> input =
        readDiffInput(path, /*isSecond=*/!inputs.empty());
    if (auto *status = std::get_if<ExitStatus>(&input))
      return *status;
    inputs.push_back(std::move(std::get<DiffInput>(input)));
  }
  Diff result = shardc::diff(inputs[0], inputs[1], options.objective);
  if (options.emit == Emit::Json)
    printDiffJson(os, result);
  else
    printDiff(os, result, options.wantsColour());
  return result.a.fits && result.b.fits ? Success : NoPlanFits;
}

/// Compiles, and judges the diagnostics instead of showing them.
ExitStatus Driver::verify(SourceMgr &sourceMgr, MLIRContext &context,
                          raw_ostream &os) {
  SourceMgrDiagnosticVerifierHandler handler(sourceMgr, &context);
  compile(sourceMgr, context, os);
  return succeeded(handler.verify()) ? Success : InputError;
}

ExitStatus Driver::runBuffer(std::unique_ptr<MemoryBuffer> buffer,
                             raw_ostream &os) {
  overrides = options.overrides();
  batchSearch.reset();
  meshSearch.reset();
  stepSearch.reset();
  stepPlan.reset();
  bool isConfig = options.readsConfig(buffer->getBuffer());
  if (ExitStatus status = checkConfigOptions(isConfig))
    return status;
  if (isConfig)
    buffer = programOfConfig(std::move(buffer),
                             options.importOptions(options.input));
  if (!buffer)
    return InputError;
  bool isAsWritten = options.verifyDiagnostics || options.emit == Emit::Ast ||
                     options.opt == OptMode::None;
  if (!options.readsModule() && !isAsWritten)
    buffer = withRolledLayers(std::move(buffer), options.input);
  if (options.emit == Emit::Program) {
    os << buffer->getBuffer();
    return Success;
  }
  Source source(std::move(buffer), options.input);
  if (options.fromConfig.getNumOccurrences() &&
      !applyFrameworkFile(options.fromConfig, source.manager, overrides))
    return InputError;
  if (options.verifyDiagnostics)
    return verify(source.manager, source.context, os);
  DiagnosticPrinter printer(source.manager, &source.context);
  if (options.asks())
    return answerQuestions(source.manager, source.context, os);
  return compile(source.manager, source.context, os);
}

ExitStatus Driver::run(std::unique_ptr<MemoryBuffer> input, raw_ostream &os) {
  if (!options.verifyDiagnostics && !overridesParse(options))
    return CommandLineError;
  if (!options.splitInputFile)
    return runBuffer(std::move(input), os);
  ExitStatus worst = Success;
  auto runPart = [&](std::unique_ptr<MemoryBuffer> part, raw_ostream &partOs) {
    worst = std::max(worst, runBuffer(std::move(part), partOs));
    return success(worst == Success);
  };
  (void)splitAndProcessBuffer(std::move(input), runPart, os,
                              kDefaultSplitMarker, kDefaultSplitMarker);
  return worst;
}

//===----------------------------------------------------------------------===//
// The command line
//===----------------------------------------------------------------------===//

/// `--list-hardware=NAME`, or with the name as an argument of its own.
static ExitStatus listHardware(const Options &options, raw_ostream &os) {
  if (!options.emitsReport())
    return commandLineError("--list-hardware prints a table, or JSON with "
                            "--emit-json");
  bool isJson = options.emit == Emit::Json;
  std::string name =
      options.listHardware.empty() ? options.input : options.listHardware;
  if (name.empty()) {
    isJson ? printCatalogueJson(os, catalogueNames()) : printCatalogue(os);
    return Success;
  }
  std::optional<Machine> machine = catalogueMachine(name);
  if (!machine) {
    return commandLineError("no hardware is named '" + name +
                            "'; did you mean " + likelyHardware(name) + "?");
  }
  if (isJson)
    printCatalogueJson(os, name);
  else
    printMachine(os, *machine, *catalogueNotes(name));
  return Success;
}

static ExitStatus checkTargets(const Options &options) {
  if (options.targetFirst.getNumOccurrences() &&
      !parseSeconds(options.targetFirst))
    return commandLineError("--target-first expects a time, such as 0.5 or "
                            "'500 ms', found '" +
                            options.targetFirst + "'");
  if (options.targetTime.getNumOccurrences() &&
      !parseSeconds(options.targetTime))
    return commandLineError("--target-time expects a time, such as 0.5 or "
                            "'20 ms', found '" +
                            options.targetTime + "'");
  if (options.targetPrice.getNumOccurrences() && !parseUsd(options.targetPrice))
    return commandLineError("--target-price expects a price of a step in USD, "
                            "such as 0.25, found '" +
                            options.targetPrice + "'");
  return Success;
}

/// What the option parser cannot check of questions.
static ExitStatus checkQuestions(const Options &options) {
  bool sweeps = options.sweep.getNumOccurrences();
  unsigned crosses = options.crossover.getNumOccurrences();
  unsigned explains = options.explain.getNumOccurrences();
  if (sweeps && crosses)
    return commandLineError("expected --sweep or --crossover, found both");
  bool lints = options.lint.getNumOccurrences();
  bool compares = options.diff.getNumOccurrences();
  if ((explains > 0) + options.memoryCurve + lints + compares +
          (sweeps || crosses) >
      1)
    return commandLineError(Twine(explains              ? "--explain"
                                  : options.memoryCurve ? "--memory-curve"
                                  : lints               ? "--lint"
                                                        : "--diff") +
                            " cannot be combined with other questions");
  if (options.emit == Emit::Csv && !sweeps)
    return commandLineError("--emit-csv expects --sweep");
  if (ExitStatus status = checkTargets(options))
    return status;
  StringRef option = options.question();
  if (option.empty())
    return Success;
  if (compares && options.objective == Objective::Lower)
    return commandLineError("--diff expects --objective=scheduled or upper: "
                            "lower time is not the sum of what operations "
                            "take");
  if (compares && StringRef(options.diff).ends_with(".mlir"))
    return commandLineError("--diff expects .shd or .json files, found '" +
                            options.diff + "'");
  if (compares && options.diff == "-" && options.input == "-")
    return commandLineError("--diff expects two files, found standard input "
                            "twice");
  if (crosses > 1 || explains > 1)
    return commandLineError("expected one " + option + ", found " +
                            Twine(std::max(crosses, explains)));
  if ((explains || options.memoryCurve) && options.opt != OptMode::Optimize)
    return commandLineError(option +
                            " expects --opt=optimize: no other mode searches");
  if (options.timeline)
    return commandLineError("--timeline cannot be combined with " + option);
  if (options.emit != Emit::Cost && options.emit != Emit::Json &&
      options.emit != Emit::Csv)
    return commandLineError(option +
                            " prints a table, or JSON with --emit-json" +
                            (sweeps ? ", or CSV with --emit-csv" : ""));
  if (options.readsModule())
    return commandLineError(option + " expects a .shd file, found '" +
                            options.input + "'");
  return Success;
}

/// What the option parser cannot check of what is drawn.
static ExitStatus checkDrawing(const Options &options) {
  if (!options.draws())
    return Success;
  StringRef option = options.drawing();
  if (options.verify || options.listHardware.getNumOccurrences() ||
      options.splitInputFile || options.verifyDiagnostics)
    return commandLineError(option + " expects a plan or a question");
  if (options.asks() && option != "--emit-html")
    return commandLineError(option + " cannot be combined with " +
                            options.question());
  return Success;
}

static ExitStatus checkMeasuredStep(const Options &options) {
  if (!options.measuredStep.getNumOccurrences())
    return Success;
  if (!options.emitsReport() || options.asks() || options.verify)
    return commandLineError("--measured-step expects --emit-cost or "
                            "--emit-json, and no question");
  std::optional<double> seconds = parseSeconds(options.measuredStep);
  if (!seconds || *seconds <= 0)
    return commandLineError("--measured-step expects a time above 0, such as "
                            "1.1 or '20 ms', found '" +
                            options.measuredStep + "'");
  return Success;
}

/// What the option parser cannot check of `--plan`.
static ExitStatus checkPlanFile(const Options &options) {
  if (!options.planFile.getNumOccurrences()) {
    if (options.freed.getNumOccurrences())
      return commandLineError("--free expects --plan");
    if (options.planAs.getNumOccurrences())
      return commandLineError("--plan-as expects --plan");
    return Success;
  }
  if (options.asks())
    return commandLineError("--plan cannot be combined with " +
                            options.question());
  if (options.readsModule() || options.emit == Emit::Ast ||
      options.emit == Emit::Mlir || options.emit == Emit::Problem)
    return commandLineError("--plan cannot be combined with a module, "
                            "--emit-ast, --emit-mlir or --emit-problem");
  for (const std::string &text : options.freed)
    if (std::optional<std::string> error = globError(text))
      return commandLineError("invalid pattern for --free: '" + text +
                              "': " + *error);
  if (options.planAs == PlanFileUse::Start && options.opt != OptMode::Optimize)
    return commandLineError(
        "--plan-as=start expects --opt=optimize: no other mode searches");
  if (!sys::fs::exists(options.planFile))
    return commandLineError("--plan cannot open '" + options.planFile +
                            "': no such file");
  return Success;
}

/// Checks of frameworks' options that the option parser cannot make.
static ExitStatus checkFrameworks(const Options &options) {
  if (options.within.getNumOccurrences()) {
    if (options.opt != OptMode::Optimize)
      return commandLineError("--for expects --opt=optimize: no other mode "
                              "searches");
    if (options.readsModule())
      return commandLineError("--for expects a .shd file, found '" +
                              options.input + "'");
    if (options.sweep.getNumOccurrences() ||
        options.crossover.getNumOccurrences() ||
        options.diff.getNumOccurrences() ||
        options.planFile.getNumOccurrences() ||
        options.fromConfig.getNumOccurrences())
      return commandLineError("--for cannot be combined with --sweep, "
                              "--crossover, --diff, --plan or --from-config");
  }
  if (!options.fromConfig.getNumOccurrences())
    return Success;
  if (options.readsModule())
    return commandLineError("--from-config expects a .shd file, found '" +
                            options.input + "'");
  if (options.mesh.getNumOccurrences())
    return commandLineError("--from-config cannot be combined with --mesh: the "
                            "options say the mesh");
  if (options.sweep.getNumOccurrences() ||
      options.crossover.getNumOccurrences() ||
      options.planFile.getNumOccurrences())
    return commandLineError(
        "--from-config cannot be combined with --sweep, --crossover or --plan");
  return Success;
}

/// What the option parser cannot check of a config's options.
static ExitStatus checkConfig(const Options &options) {
  for (const auto &[option, value] :
       {std::pair<const cl::Option *, int64_t>(&options.batch, options.batch),
        {&options.sequence, options.sequence},
        {&options.generate, options.generate},
        {&options.task, 1}}) {
    if (option->getNumOccurrences() &&
        (value < 1 || value > (int64_t(1) << 40)))
      return commandLineError("--" + option->ArgStr +
                              " expects a number from 1 to 2^40, found " +
                              Twine(value));
  }
  if (options.generate.getNumOccurrences() &&
      options.task != import::Task::Serve)
    return commandLineError("--generate expects --task=serve");
  if (options.emit == Emit::Program && options.readsModule())
    return commandLineError("--emit-program expects a .shd file or a "
                            "config.json, found '" +
                            options.input + "'");
  if (options.emit == Emit::Program && options.verify)
    return commandLineError("--emit-program cannot be combined with --verify");
  return Success;
}

/// What the option parser cannot check.
static ExitStatus checkCommandLine(const Options &options) {
  unsigned emits = options.emit.getNumOccurrences() +
                   options.picture.getNumOccurrences() +
                   options.config.getNumOccurrences();
  if (emits > 1)
    return commandLineError("expected one --emit-* option, found " +
                            Twine(emits));
  if (ExitStatus status = checkDrawing(options))
    return status;
  if (ExitStatus status = checkQuestions(options))
    return status;
  if (ExitStatus status = checkMeasuredStep(options))
    return status;
  if (ExitStatus status = checkConfig(options))
    return status;
  if (ExitStatus status = checkFrameworks(options))
    return status;
  if (options.verify &&
      (!options.emitsReport() || options.asks() || options.timeline))
    return commandLineError(
        "--verify prints its own report, or JSON with --emit-json; it cannot "
        "be combined with another --emit-*, --timeline or questions about many "
        "plans");
  if (options.verify && options.readsModule())
    return commandLineError("--verify expects a .shd file, found '" +
                            options.input + "'");
  if (options.rounding.getNumOccurrences() && !options.verify)
    return commandLineError("--rounding expects --verify");
  bool isTime = options.timeLimit >= 0 && std::isfinite(options.timeLimit);
  if (options.timeLimit.getNumOccurrences() && !isTime)
    return commandLineError("--time-limit expects a finite number of seconds "
                            "from 0 on");
  if (options.jobs == 0)
    return commandLineError("--jobs expects at least one thread, found 0");
  if (options.memoryLimit.getNumOccurrences() &&
      !parseBytes(options.memoryLimit))
    return commandLineError("--memory-limit expects bytes, such as 12GB, "
                            "found '" +
                            options.memoryLimit + "'");
  if (options.emit == Emit::Problem &&
      (options.opt != OptMode::Optimize ||
       (options.objective.getNumOccurrences() &&
        options.objective != Objective::Upper)))
    return commandLineError(
        "--emit-problem expects --opt=optimize and --objective=upper");
  if (ExitStatus status = checkPlanFile(options))
    return status;
  if (options.phase.getNumOccurrences() &&
      (options.emit == Emit::Plan || options.readsModule()))
    return commandLineError("--phase cannot be combined with a module or with "
                            "--emit-plan, whose text would be that of both "
                            "phases");
  if (options.timeline && !options.emitsReport())
    return commandLineError(
        "--timeline expects the cost report or --emit-json");
  bool needsText = options.emit == Emit::Ast || options.emit == Emit::Plan;
  if (options.readsModule() && needsText)
    return commandLineError(
        Twine(options.emit == Emit::Ast ? "--emit-ast" : "--emit-plan") +
        " expects a .shd file, found '" + options.input + "'");
  if (options.readsModule() && options.overridesDeclarations())
    return commandLineError("--hardware, --mesh, --dim, --calibrated and "
                            "--allow-padding expect a .shd file, found '" +
                            options.input + "'");
  return Success;
}

/// `within`: only plans that the framework expresses, in place of what the
/// options say.
static ExitStatus compileFile(const Options &options, TimingScope &timing,
                              raw_ostream &os, ChoiceAhead *ahead,
                              std::optional<Framework> within = {}) {
  if (options.input.empty())
    return commandLineError("expected a FILE.shd, or - for standard input; "
                            "--help lists the options");
  const std::atomic<bool> &interrupted = catchInterrupts();
  Driver driver(options, timing, interrupted);
  if (within)
    driver.searchWithin(*within);
  driver.searchAhead(ahead);
  if (options.diff.getNumOccurrences())
    return driver.diff(os);
  std::string message;
  std::unique_ptr<MemoryBuffer> input = openText(options.input, message);
  if (!input)
    return commandLineError(message);
  if (options.draws() && isJsonReport(input->getBuffer())) {
    os << input->getBuffer();
    return Success;
  }
  ExitStatus status = driver.run(std::move(input), os);
  return status == InputError && interrupted ? Interrupted : status;
}

/// True if --emit-config searches the nearest plan that the framework expresses
/// where it does not express the best.
static bool searchesNearest(const Options &options) {
  return options.config.getNumOccurrences() &&
         options.opt == OptMode::Optimize && !options.readsModule() &&
         !options.within.getNumOccurrences() &&
         !options.fromConfig.getNumOccurrences() &&
         !options.planFile.getNumOccurrences() && options.input != "-" &&
         !options.isReport();
}

/// The report of the nearest plan that the framework of --emit-config
/// expresses; empty if it expresses the one in `text`, or there is no program
/// to search.
static Expected<std::string> nearestPlan(const Options &options,
                                         TimingScope &timing,
                                         ChoiceAhead *ahead, StringRef text) {
  Expected<bool> isExpressed = expressesPlan(options.config, text);
  if (!isExpressed)
    return isExpressed.takeError();
  if (*isExpressed || !searchesNearest(options))
    return "";
  std::string nearest;
  raw_string_ostream os(nearest);
  ExitStatus status = compileFile(options, timing, os, ahead, options.config);
  // Without such a plan, the differences are all there is to say.
  if (status != Success && status != NoPlanFits)
    nearest.clear();
  return nearest;
}

/// Makes of the JSON report in `text` what is to be drawn.
static ExitStatus draw(const Options &options, TimingScope &timing,
                       ChoiceAhead *ahead, std::string &text) {
  std::string drawn;
  raw_string_ostream os(drawn);
  auto print = [&]() -> Error {
    if (!options.config.getNumOccurrences())
      return options.picture == Picture::Trace ? printTrace(os, text)
                                               : printPage(os, text);
    Expected<std::string> nearest = nearestPlan(options, timing, ahead, text);
    if (!nearest)
      return nearest.takeError();
    return printFrameworkConfig(os, options.config, text, *nearest);
  };
  if (Error error = print()) {
    errs() << options.name() << ": error: " << toString(std::move(error))
           << "\n";
    return InputError;
  }
  text = std::move(drawn);
  return Success;
}

/// `ahead`, if there is one, searches what --emit-config may ask for next.
static ExitStatus runShardc(const Options &options, ChoiceAhead *ahead) {
  if (ExitStatus status = checkCommandLine(options))
    return status;
  DefaultTimingManager timingManager;
  applyDefaultTimingManagerCLOptions(timingManager);
  TimingScope timing = timingManager.getRootScope();
  std::string text;
  raw_string_ostream os(text);
  ExitStatus status = options.listHardware.getNumOccurrences()
                          ? listHardware(options, os)
                          : compileFile(options, timing, os, ahead);
  // Parts of a split input that compile are printed whatever the others do.
  bool complete =
      status == Success || status == NoPlanFits || status == Finding;
  if (!complete && !options.splitInputFile)
    return status;
  if (options.draws())
    if (ExitStatus failed = draw(options, timing, ahead, text))
      return failed;
  if (Error error = writeOutput(options.output, text))
    return commandLineError(toString(std::move(error)));
  return status;
}

/// Failures of shardc itself end with their own status.
static void installInternalErrorHandlers() {
  install_fatal_error_handler([](void *, const char *reason, bool) {
    errs() << "shardc: internal error: " << reason << "\n";
    errs().flush();
    sys::Process::Exit(InternalError, /*NoCleanup=*/true);
  });
  setBugReportMsg("");
  sys::AddSignalHandler(
      [](void *) {
        errs() << "shardc: internal error; please report it with the input\n";
        errs().flush();
        sys::Process::Exit(InternalError, /*NoCleanup=*/true);
      },
      nullptr);
}

/// The first argument `--NAME` that is no option; empty if all are. LLVM would
/// take `--objectiv` for `-o`, and suggest that.
static std::string findUnknownOption(ArrayRef<char *> arguments) {
  const auto &options = cl::getRegisteredOptions();
  for (StringRef argument : arguments) {
    if (argument == "--")
      break;
    StringRef name = argument.split('=').first;
    if (name.consume_front("--") && !options.contains(name))
      return name.str();
  }
  return "";
}

/// Names the option that was probably meant, of those that `--help` lists.
static ExitStatus unknownOption(StringRef name) {
  SmallVector<StringRef> names, longer;
  for (const auto &[each, option] : cl::getRegisteredOptions())
    if (option->getOptionHiddenFlag() == cl::NotHidden && each.size() > 1)
      names.push_back(each);
  llvm::sort(names);
  for (StringRef each : names)
    if (each.starts_with(name))
      longer.push_back(each);
  StringRef near =
      longer.empty() ? nearestName(name, names, 3) : longer.front();
  return commandLineError("unknown option '--" + name + "'" +
                          (near.empty() ? Twine("; --help lists them")
                                        : "; did you mean '--" + near + "'?"));
}

int main(int argc, char **argv) {
  InitLLVM initLLVM(argc, argv);
  installInternalErrorHandlers();
  WithColor::setAutoDetectFunction(
      [](const raw_ostream &os) { return wantsColour(os.has_colors()); });

  Options options;
  registerAsmPrinterCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  cl::HideUnrelatedOptions(
      {&emitCategory, &planCategory, &questionCategory, &otherCategory});
  cl::SetVersionPrinter(
      [](raw_ostream &os) { os << "shardc " SHARDC_VERSION "\n"; });
  if (std::string unknown =
          findUnknownOption(ArrayRef(argv, argc).drop_front());
      !unknown.empty())
    return unknownOption(unknown);
  std::string message;
  raw_string_ostream messageOs(message);
  if (!cl::ParseCommandLineOptions(
          argc, argv, "shardc: finds tensor sharding plans\n", &messageOs)) {
    errs() << message;
    return CommandLineError;
  }
  // Whatever is drawn is made of the JSON report.
  if (options.draws() && !options.emit.getNumOccurrences())
    options.emit.setValue(Emit::Json);
  // With one thread it is better to know first whether there is a second
  // search.
  std::optional<ChoiceAhead> ahead;
  if (searchesNearest(options) && options.jobs > 1)
    ahead.emplace(options.config);
  int status = runShardc(options, ahead ? &*ahead : nullptr) & 0xff;
  if (ahead && ahead->isGoingOn()) {
    // Its result is not needed, and its thread must not see teardown.
    outs().flush();
    sys::Process::Exit(status, /*NoCleanup=*/true);
  }
  // Skips teardown of what ends with the process.
  exit(status);
}
