//===- shardc-solve.cpp - Solves problems of the auto-sharding contest ----===//
//
// Reads a problem, shows how the search goes on a terminal, and prints the best
// choices found, also when it is interrupted. Holds no logic of the solver.
//
//===----------------------------------------------------------------------===//

#include "shardc/Contest/Read.h"
#include "shardc/Contest/Solve.h"
#include "shardc/Terminal/Interrupt.h"
#include "shardc/Terminal/ProgressLine.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"
#include <chrono>

using namespace llvm;
using namespace shardc;

namespace {

enum ExitStatus {
  Success = 0,
  InputError = 1,
  CommandLineError = 2,
  NoPlanFits = 3,
};

/// Steps that are not cut short are ended, and answers checked and written, in
/// this time; in more where reading took long.
constexpr double kReservedSeconds = 0.4, kReservedShare = 0.5;

class Clock {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

private:
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

struct Settings {
  std::string file;
  std::optional<double> timeLimit;
  unsigned jobs = 1;
  uint64_t seed = 1;
  bool json = false;
};

int fail(const std::string &file, const std::string &message,
         ExitStatus status) {
  WithColor::error(errs()) << file << ": " << message << '\n';
  return status;
}

void show(ProgressLine &line, const solver::SearchProgress &progress) {
  auto text = [](const std::optional<solver::Cost> &cost) {
    return cost ? std::optional(std::to_string(*cost)) : std::nullopt;
  };
  std::optional<double> gap;
  if (progress.cost && progress.bound && *progress.cost)
    gap = double(*progress.cost - *progress.bound) / double(*progress.cost);
  line.show(text(progress.cost), text(progress.bound), gap);
}

int run(const Settings &settings) {
  Clock clock;
  const std::atomic<bool> &interrupted = catchInterrupts();
  std::string error;
  std::optional<std::string> text = contest::loadFile(settings.file, error);
  if (!text)
    return fail(settings.file, error, InputError);
  contest::ReadResult read = contest::parseProblem(*text);
  if (!read.problem)
    return fail(settings.file, read.error, InputError);
  text.reset();
  if (std::optional<std::string> wrong = contest::checkSums(*read.problem))
    return fail(settings.file, *wrong, InputError);

  ProgressLine line(ProgressLine::isWanted());
  solver::SearchOptions options;
  options.jobs = settings.jobs;
  options.seed = settings.seed;
  options.interrupted = &interrupted;
  if (settings.timeLimit) {
    double reading = clock.seconds();
    options.timeLimitSeconds =
        std::max(0.0, *settings.timeLimit - reading - kReservedSeconds -
                          kReservedShare * reading);
  }
  options.progress = [&](const solver::SearchProgress &progress) {
    show(line, progress);
  };
  contest::Answer answer = contest::solve(*read.problem, options);
  outs() << (settings.json ? contest::toJson(answer, clock.seconds())
                           : contest::toText(answer));
  outs().flush();
  // Skips teardown of what ends with the process.
  exit(answer.choices.empty() ? NoPlanFits : Success);
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM initLLVM(argc, argv);
  cl::OptionCategory category("Options");
  cl::opt<std::string> file(cl::Positional, cl::Required,
                            cl::desc("FILE.json[.gz]"), cl::cat(category));
  cl::opt<double> timeLimit(
      "time-limit", cl::value_desc("S"),
      cl::desc("End after S seconds with the best choices found and the proven "
               "gap; without it, when nothing improves any more"),
      cl::cat(category));
  cl::opt<unsigned> jobs(
      "jobs", cl::value_desc("N"), cl::init(1),
      cl::desc("Threads; the result depends on them only where time ends it"),
      cl::cat(category));
  cl::opt<uint64_t> seed("seed", cl::init(1), cl::Hidden,
                         cl::desc("Of the random numbers, to measure what "
                                  "depends on them"),
                         cl::cat(category));
  cl::opt<bool> json("json", cl::desc("Print one JSON object"),
                     cl::cat(category));
  cl::HideUnrelatedOptions(category);
  cl::SetVersionPrinter(
      [](raw_ostream &os) { os << "shardc-solve " SHARDC_VERSION "\n"; });
  std::string message;
  raw_string_ostream messageOs(message);
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "shardc-solve: finds choices of least cost that fit in memory\n",
          &messageOs)) {
    errs() << message;
    return CommandLineError;
  }
  if (timeLimit.getNumOccurrences() && !(timeLimit > 0)) {
    WithColor::error(errs()) << "--time-limit: expected a positive number of "
                                "seconds, found "
                             << timeLimit << '\n';
    return CommandLineError;
  }
  if (jobs == 0) {
    WithColor::error(errs()) << "--jobs: expected at least 1, found 0\n";
    return CommandLineError;
  }
  Settings settings;
  settings.file = file;
  if (timeLimit.getNumOccurrences())
    settings.timeLimit = timeLimit;
  settings.jobs = jobs;
  settings.seed = seed;
  settings.json = json;
  return run(settings);
}
