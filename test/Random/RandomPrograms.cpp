//===- RandomPrograms.cpp - random-programs -------------------------------===//
//
// Makes random programs, or reads one, and checks several plans of each.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/PrettyStackTrace.h"

using namespace llvm;
using namespace shardc;
using namespace shardc::test;

namespace {

cl::opt<std::string> input{cl::Positional,
                           cl::desc("[FILE.shd: check this program instead]")};
cl::opt<uint64_t> seed{"seed", cl::desc("Of the first program"), cl::init(0)};
cl::opt<unsigned> count{"count", cl::desc("How many programs"), cl::init(1)};
cl::opt<bool> allowPadding{"allow-padding",
                           cl::desc("Read FILE.shd with --allow-padding")};
cl::opt<unsigned> trained{"trained",
                          cl::desc("Percentage of programs with a train block"),
                          cl::init(0)};
cl::opt<unsigned> experts{
    "experts", cl::desc("Percentage of programs that end with experts"),
    cl::init(12)};
cl::opt<bool> calibrated{"calibrated", cl::desc("Plan by calibrated times")};
cl::opt<bool> printOnly{"print", cl::desc("Print the programs, check nothing")};
cl::opt<bool> features{"features", cl::desc("Count what the programs use")};
cl::list<std::string> only{"check", cl::desc("Only this check"),
                           cl::value_desc("NAME")};

/// Counts of all programs.
struct Summary {
  unsigned programs = 0, rejected = 0, plans = 0, impossible = 0;
  /// Programs that can be read and have every kind of plan.
  unsigned accepted = 0;
  /// Plans that cannot be written as programs: random ones and others.
  unsigned randomWithoutText = 0, withoutText = 0;
  std::map<std::string, unsigned> features;
};

bool isWanted(StringRef name) {
  return only.empty() || is_contained(only, name.str());
}

/// False after a failure, which is reported with the command that repeats it.
bool checkProgram(const RandomProgram &program, uint64_t number,
                  const std::string &command, Summary &summary) {
  PrettyStackTraceFormat crash("%s", command.c_str());
  Overrides overrides;
  overrides.allowPadding = program.allowPadding;
  overrides.calibrated = calibrated;
  std::string plan, failed, message;
  Outcome outcome =
      onPlans(program.text, overrides, number, [&](PlannedProgram &planned) {
        for (const Check &check : checks()) {
          if (!isWanted(check.name))
            continue;
          message = check.run(planned);
          if (message.empty())
            continue;
          plan = planned.plan;
          failed = check.name;
          return false;
        }
        unsigned &without = planned.plan == "random" ? summary.randomWithoutText
                                                     : summary.withoutText;
        // A step's plan has no text where an axis of one device keeps a weight
        // whole that its layouts would let be stacked, or nothing reads a copy.
        without += !planned.hasText && !program.features.count("train");
        return true;
      });
  if (!outcome.failure.empty()) {
    plan = outcome.failedPlan;
    failed = "passes";
    message = outcome.failure;
  }
  ++summary.programs;
  summary.rejected += outcome.isRejected;
  summary.plans += outcome.plans;
  summary.impossible += outcome.impossible;
  summary.accepted += !outcome.isRejected && outcome.impossible == 0;
  if (failed.empty())
    return true;
  outs() << "FAILED " << failed << " of plan " << plan << ": " << command
         << "\n"
         << message << "\n--- the program\n"
         << program.text << "---\n";
  return false;
}

bool checkSeeds(Summary &summary) {
  bool holds = true;
  for (uint64_t number = seed; number < seed + count; ++number) {
    RandomProgramOptions how;
    how.trained = trained;
    how.experts = experts;
    RandomProgram program = makeRandomProgram(number, how);
    for (const auto &[feature, times] : program.features)
      summary.features[feature] += times;
    if (printOnly) {
      outs() << program.text;
      continue;
    }
    std::string command =
        formatv("random-programs --seed {0} --trained {1} --experts {2}{3}",
                number, trained, experts, calibrated ? " --calibrated" : "");
    holds &= checkProgram(program, number, command, summary);
  }
  return holds;
}

bool checkFile(Summary &summary) {
  auto buffer = MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/true);
  if (!buffer) {
    errs() << "random-programs: error: " << buffer.getError().message() << "\n";
    return false;
  }
  RandomProgram program;
  program.text = (*buffer)->getBuffer().str();
  program.allowPadding = allowPadding;
  return checkProgram(program, seed,
                      formatv("random-programs {0} --seed {1}", input, seed),
                      summary);
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM initLLVM(argc, argv);
  std::string overview = "checks plans of random programs\n\nchecks:\n";
  for (const Check &check : checks())
    overview += std::string("  ") + check.name + ": " + check.what + "\n";
  cl::ParseCommandLineOptions(argc, argv, overview);
  for (const std::string &name : only)
    if (none_of(checks(),
                [&](const Check &check) { return name == check.name; }) &&
        name != "passes") {
      errs() << "random-programs: error: no check is named '" << name << "'\n";
      return 2;
    }
  Summary summary;
  bool holds = input.empty() ? checkSeeds(summary) : checkFile(summary);
  for (const auto &[feature, times] : summary.features)
    if (features)
      outs() << formatv("{0,8} {1}\n", times, feature);
  if (!printOnly)
    outs() << formatv("{0} programs: {1} rejected, {2} with every plan; {3} "
                      "plans, {4} impossible; without a text: {5} and {6} "
                      "random\n",
                      summary.programs, summary.rejected, summary.accepted,
                      summary.plans, summary.impossible, summary.withoutText,
                      summary.randomWithoutText);
  return holds ? 0 : 1;
}
