//===- Report.h - What a planned program costs ----------------*- C++ -*-===//
//
// Every fact that `--emit-cost` and `--emit-json` print, computed once. Times
// in seconds, sizes in bytes, for one device and one step unless a name says
// otherwise; what is unknown is absent. See
// docs/CostModel.md#5-the-time-of-a-step and
// docs/CostModel.md#6-memory-of-one-device.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_REPORT_H
#define SHARDC_REPORT_REPORT_H

#include "shardc/Cost/Collective.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Schedule/ScheduledProgram.h"
#include <string>
#include <variant>
#include <vector>

namespace shardc {
class Compilation;

/// One tensor: declared, named by a statement, or an output.
struct StagePlan;

struct ReportTensor {
  struct Dim {
    std::string index;
    int64_t size = 1;
    std::vector<std::string> axes;
  };
  std::string name;
  /// `input`, `weight`, `gradient`, `master`, `moment`, `saved`, `state`,
  /// `output` or `activation`.
  std::string kind;
  /// The tensor that a gradient, a master copy, a moment or what is saved
  /// belongs to.
  std::string of;
  std::string dtype;
  /// As stored: weights and states of a `repeat` have its index in front.
  std::vector<Dim> dims;
  std::vector<std::string> partial;
  /// In the language's notation, `[L, D@X, F]`.
  std::string sharding;
  double globalBytes = 0;
  double localBytes = 0;
  /// In the host's memory; `localBytes` are a device's share of it.
  bool isOnHost = false;
  std::string loc;
};

/// From there on devices execute different FLOPs, not rounded ones.
inline constexpr double kLeastImbalance = 1 + 1e-9;

/// One separately costed part of a fusion group; figures of one run.
struct ReportCompute {
  /// Its function, for people: `relu`, `softmax`; else the kind.
  std::string function;
  /// Functions fused behind the leading operation, and those of elementwise
  /// operations before it that it computes as it reads their inputs.
  std::vector<std::string> fused, prologue;
  GroupCost cost;
  /// Of the FLOPs on the matrix units, which are the busiest device's, the mean
  /// of all devices.
  double meanMatrixFlops = 0;
  /// Sharding of the leading operation's result.
  std::string sharding;

  /// The busiest device's FLOPs over the mean; 1 if all execute alike.
  double imbalance() const {
    return meanMatrixFlops > 0 ? cost.matrixFlops / meanMatrixFlops : 1;
  }

  /// FLOPs on the matrix units, or if there are none on the vector units.
  double flops() const {
    return cost.matrixFlops > 0 ? cost.matrixFlops : cost.vectorFlops;
  }
  /// FLOPs for each byte of HBM traffic, and from how many on the units that
  /// execute them are the bound; absent where there is no traffic or no work.
  std::optional<double> intensity() const;
  std::optional<double> criticalIntensity() const;
};

/// `convert + einsum + relu`: a compute operation's functions in their order.
std::string functionsText(llvm::ArrayRef<std::string> prologue,
                          llvm::StringRef function,
                          llvm::ArrayRef<std::string> fused);

/// One collective; figures of one run.
struct ReportCollective {
  CollectiveKind kind = CollectiveKind::AllGather;
  std::vector<std::string> axes;
  /// The tensor that it moves.
  std::string operand;
  CollectiveCost cost;
  /// Physical axes of the network that sets its time, joined by commas; empty
  /// if it is free.
  std::string network;
  std::string from, to;
  /// Why it is there, as a sentence.
  std::string reason;
  /// How long compute waits for it, all runs of a step together.
  Picoseconds exposed = 0;
  /// The matmul with which it runs in overlapped chunks; empty if none.
  std::string matmul;
  /// The attention around whose ring it travels; empty if none.
  std::string ringAttention;
};

struct ReportItem {
  std::string name;
  /// `einsum`, `attention`, ... or `all_gather`, ...
  std::string kind;
  std::string loc;
  /// Runs in a step.
  int64_t count = 1;
  /// Time of one run.
  double seconds = 0;
  /// Time of all runs of a step.
  Picoseconds total = 0;
  /// Index of the innermost enclosing repeat in `Report::repeats`, or -1.
  int repeat = -1;
  shd::Phase phase = shd::Phase::Forward;
  /// With `ReportOptions::timeline`: bytes in use on a device while it runs; of
  /// a pipeline, on the fullest stage.
  std::optional<MemoryByKind> memory;
  std::variant<ReportCompute, ReportCollective> detail;

  const ReportCompute *compute() const {
    return std::get_if<ReportCompute>(&detail);
  }
  const ReportCollective *collective() const {
    return std::get_if<ReportCollective>(&detail);
  }
  /// `compute`, `hbm` or `host`; of a collective `bandwidth` or `latency`.
  llvm::StringRef bound() const;
};

struct Report {
  std::string file;

  struct Hardware {
    std::string name;
    std::vector<int64_t> shape;
    int64_t chips = 1;
    /// The type in which most of the program's matrix work runs, and its peak;
    /// absent if there is no such work.
    std::string computeType;
    std::optional<double> peakFlops;
    double hbmBandwidth = 0;
    /// Torus axes and switched levels, outermost first.
    struct Level {
      std::string name, network;
      int64_t size = 1;
      /// An axis of a torus that is a ring.
      bool wraps = false;
      /// Bytes/s for one chip: one link of a torus in one direction, a chip's
      /// share of a switched level.
      double bandwidth = 0;
    };
    std::vector<Level> levels;
  } hardware;

  struct Axis {
    std::string name;
    int64_t size = 1;
    /// Physical axes that it lies on, outermost first.
    std::vector<std::string> on;
    /// The part of each that it takes: `size` of its `whole` positions, which
    /// are `stride` apart.
    struct Part {
      int64_t size = 1, stride = 1, whole = 1;
    };
    std::vector<Part> parts;
    /// The axis's part in the matrix work, as in `words`: `data`, `context`,
    /// `tensor`, `tensor and sequence`, `replicated`, with `mostly ` in front
    /// if it is not all of the work; `pipeline`; or `none` without matrix work.
    std::string role = "none";
    /// `ZeRO-1` to `ZeRO-3`, or empty.
    std::string zero;
    /// Most work on experts has the axis on their index.
    bool splitsExperts = false;
    /// How keys and values come to attention along it: `ring`, `halo`, `ring
    /// and halo`, or empty.
    std::string keys;
  };
  std::vector<Axis> mesh;
  /// Indices in zigzag order, and the parts that each is dealt to.
  std::vector<std::pair<std::string, int64_t>> zigzag;
  int64_t idleChips = 0;
  /// The same plan in another binding of the mesh, where that is faster.
  struct FasterBinding {
    /// As a program says it: `mesh [X=4 on y, Y=4 on x]`.
    std::string mesh;
    /// Time of a step there, as scheduled.
    double scheduled = 0;
  };
  std::optional<FasterBinding> fasterBinding;

  /// How `mesh auto` was decided.
  struct MeshSearch {
    struct Candidate {
      /// `[X=4 on x, Y=8 on (y, z)]`.
      std::string mesh;
      /// The best plan there, if it was planned; times in seconds.
      struct Plan {
        std::string status;
        double value = 0, scheduled = 0;
        std::optional<double> gap;
        int64_t peak = 0;
        bool fits = false;
      };
      std::optional<Plan> plan;
      /// No plan there takes less of the objective's time; absent if nothing is
      /// proven.
      std::optional<double> bound;
      /// The step of that plan, if the program is trained.
      struct Recipe {
        int64_t stages = 1, microbatches = 1;
        /// Empty without stages.
        std::string schedule, remat;
        std::optional<double> mfu, bubble;
      };
      std::optional<Recipe> recipe;
    };
    /// The chosen one and some others, the best first.
    std::vector<Candidate> best;
    /// Meshes in all; those of a proven bound that is not below the chosen
    /// plan, those on which there is no plan, and those of which neither is
    /// known.
    int64_t meshes = 0, ruledOut = 0, impossible = 0, open = 0;
    /// Bound of all meshes but the chosen one; absent if nothing is proven.
    std::optional<double> boundOfOthers;
    /// Stages, microbatches, schedule and recomputation were chosen with the
    /// mesh: bounds hold for all of them.
    bool ofRecipes = false;
    /// Time ran out, or someone interrupted, before the search was over.
    bool isCut = false, isInterrupted = false;
    /// A step of some recipe that fits, such that no planned one takes less
    /// time and as little memory.
    struct Tradeoff {
      std::string mesh, remat;
      int64_t microbatches = 1;
      double scheduled = 0;
      int64_t memory = 0;
    };
    /// The frontier of time against memory, the fastest first.
    std::vector<Tradeoff> frontier;
    /// Why no stages were tried; empty if they were.
    std::string note;

    /// `chosen`, `planned`, `ruled out` or `open`: of one of `best`, where the
    /// chosen plan takes `value`.
    llvm::StringRef statusOf(size_t i, double value) const;
  };
  std::optional<MeshSearch> meshSearch;

  /// The plan in the words people use.
  std::string words;

  /// Elements of all weights, and of those that are trained.
  int64_t parameters = 0, trainedParameters = 0;
  /// Those that work on one token: of experts as many as it picks; and without
  /// tables of which only rows are read.
  int64_t activeParameters = 0, activeWithoutEmbedding = 0;

  /// The experts of a program with `dispatch`; of several kinds the first.
  struct Experts {
    int64_t total = 0, perToken = 0;
    /// Slots over tokens times picks.
    double capacityFactor = 1;
    /// FLOPs on slots over those of the tokens that pick, of all experts.
    double executedToModel = 1;
    /// Experts that a step's tokens pick on average, if they pick at random;
    /// those of a device that are picked by the tokens whose slots it has, and
    /// the devices among which experts are split.
    double touched = 0, touchedPerDevice = 0;
    int64_t devices = 1;
  };
  std::optional<Experts> experts;

  /// Facts of a training step.
  struct Training {
    int64_t microbatches = 1;
    /// `auto`, `none`, `full` or `every`; and the k of the last.
    std::string remat;
    int64_t every = 0;
    /// `none` or `optimizer`.
    std::string offload;
    /// Names of values that are saved on the host.
    std::vector<std::string> offloaded;
    /// Each update follows its gradient.
    bool isFused = false;
    /// The type in which gradients are sent.
    std::string reduce;
    /// Tokens of a whole run; its time and price, where known.
    double tokens = 0;
    std::optional<double> seconds, usd;
    /// Device time of each phase.
    double forward = 0, backward = 0, recompute = 0, update = 0;
  };
  std::optional<Training> training;

  /// The part of the host in a step, for each device: what its memory holds,
  /// what crosses its link, and what its memory moves.
  struct Host {
    int64_t memory = 0;
    std::optional<int64_t> capacity;
    HostCost step;

    bool fits() const { return !capacity || memory <= *capacity; }
  };
  std::optional<Host> host;

  /// What a step that took so long in practice amounts to.
  struct Measured {
    double step = 0;
    std::optional<double> mfu, mfuFullAttention, hfu;
    std::optional<double> tokensPerSecond, examplesPerSecond;
    /// Of a whole run, in a training step.
    std::optional<double> seconds, usd;
  };
  std::optional<Measured> measured;

  /// How the step's open choices, microbatches and recomputation, were made.
  struct StepSearch {
    struct Variant {
      int64_t microbatches = 1;
      /// `none`, `selective`, `recompute a, h` or `full`.
      std::string remat;
      /// `none` or `optimizer`.
      std::string offload;
      /// Each update follows its gradient.
      bool isFused = false;
      /// The best plan, if it was planned; times in seconds.
      std::optional<double> value, scheduled, gap;
      std::optional<int64_t> memory;
      bool fits = false;
      /// `chosen`, `planned`, `ruled out` or `open`.
      std::string status;
    };
    /// The chosen one first, then the best of the others.
    std::vector<Variant> variants;
    /// Why microbatches are not possible; empty if they are.
    std::string note;
    bool isMicrobatchesOpen = false, isRematOpen = false, isOffloadOpen = false;
    /// There are other forms than the chosen one, and their bound, if any.
    bool hasOthers = false;
    /// The time ended before there was a form that fits.
    bool noneInTime = false;
    std::optional<double> boundOfOthers;
    /// The gap among plans of the chosen form.
    std::optional<double> ownGap;
  };
  std::optional<StepSearch> stepSearch;

  /// How `batch = auto` was chosen.
  struct BatchSearch {
    /// The dim of the batch, and its extent.
    std::string dim;
    int64_t size = 0;
    double perChip = 0;
    /// The least batch that was planned and does not fit.
    std::optional<int64_t> tooLarge;
    /// Batches that were planned.
    int64_t tried = 0;
    bool fits = false;
    /// Larger ones were not tried for want of time.
    bool isCut = false;
  };
  std::optional<BatchSearch> batchSearch;

  /// The stages of a pipeline; times of a whole step, in seconds.
  struct Stages {
    std::string axis, index;
    /// `1f1b`, `interleaved(2)`, ...
    std::string order;
    int64_t microbatches = 1;
    /// Share of the pipeline's time for which the slowest stage idles, and that
    /// time with all else that is no stage's work.
    double bubble = 0, pipeline = 0;
    /// A microbatch on its way to the next stage: bytes of a device, and time.
    double transferBytes = 0, transfer = 0;
    /// At their peak, of a stage on average.
    double matrixSeconds = 0;
    struct Stage {
      /// Of each chunk.
      std::vector<int64_t> layers;
      /// Its items and its update.
      double time = 0;
      int64_t memory = 0, weights = 0, gradients = 0, optimizer = 0, saved = 0;
      int64_t states = 0;
      /// With `ReportOptions::timeline`: when the stage's update runs.
      Picoseconds updateStart = 0, updateEnd = 0;
      /// Microbatches in flight at once, of each chunk.
      int64_t kept = 0;

      int64_t numLayers() const;
    };
    std::vector<Stage> stages;
    unsigned slowest = 0, fullest = 0;
    /// Schedules that were tried, the chosen one first.
    struct Tried {
      std::string order;
      double step = 0;
      int64_t memory = 0;
      bool fits = false;
    };
    std::vector<Tried> tried;
    /// With `ReportOptions::timeline`: what each stage ran when, for example
    /// `F3` in the second chunk.
    struct Event {
      unsigned stage = 0;
      std::string kind;
      int64_t microbatch = 0, chunk = 0;
      Picoseconds start = 0, end = 0;
    };
    std::vector<Event> events;
    /// A message with the result of an event of this kind, to another stage.
    struct Transfer {
      unsigned from = 0, to = 0;
      std::string kind;
      int64_t microbatch = 0, chunk = 0;
      Picoseconds start = 0, end = 0;
    };
    std::vector<Transfer> transfers;
  };
  std::optional<Stages> stages;

  struct Time {
    double lower = 0, scheduled = 0, upper = 0;
    /// Time for which compute waits for collectives: scheduled - device.
    double exposed = 0;
    /// Sums over operations of their compute and their HBM time.
    double compute = 0, hbm = 0;
    /// Sum of the operations' times, and its split by what bounds each.
    double device = 0, computeBound = 0, hbmBound = 0, hostBound = 0;
    /// Sum of the collectives' times.
    double collectives = 0;
    /// By mesh axes (several joined by a comma), in mesh order: every single
    /// axis, then the joined ones that occur.
    std::vector<std::pair<std::string, double>> network;
    /// By physical axis, in the machine's order.
    std::vector<std::pair<std::string, double>> physical;
    /// `compute`, `hbm` or `network`.
    std::string bound;
  } time;

  /// What the times rest on, on a calibrated machine.
  struct Calibration {
    /// The worst last.
    enum class Provenance { Measured, Borrowed, Missing };
    /// A figure that the plan uses, as the hardware file calls it (`matmul`,
    /// `nvlink.base`); without a value where nothing was measured, and the
    /// roofline's counts.
    struct Figure {
      std::string name;
      std::optional<double> value;
      /// On which it was measured.
      std::string machine;
      Provenance provenance = Provenance::Missing;
    };
    std::vector<Figure> figures;
    /// The first figure of the worst provenance; null if none is used.
    const Figure *worst() const;
    /// The same plan at peak rates.
    Time roofline;
  };
  std::optional<Calibration> calibration;

  /// How collectives overlap with operations.
  struct Overlap {
    /// Overlap given up for lack of memory: the index of a repeat, or -1 for
    /// operations outside of repeats; and what happens instead.
    struct GivenUp {
      int repeat = -1;
      shardc::Overlap instead = shardc::Overlap::Serial;
    };
    std::vector<GivenUp> givenUp;
    /// How much longer the step takes for it.
    double memoryCosts = 0;
    /// Pairs that run as collective matmuls, and what they save.
    int64_t matmuls = 0;
    double matmulsSave = 0;
    /// Whether the machine has it.
    bool collectiveMatmul = false;
    /// Attention that runs around a ring, and whether the machine lets it.
    int64_t rings = 0;
    /// Rings of the backward pass, in which gradients travel too.
    int64_t gradientRings = 0;
    bool ringAttention = true;
  } overlap;

  /// Tokens of a step: elements of the largest integer input that is positions
  /// of a gather.
  std::optional<int64_t> tokens;
  std::optional<double> tokensPerSecond;
  /// Of a step without tokens: the extent of its batch.
  std::optional<int64_t> examples;
  std::optional<double> examplesPerSecond;

  struct Flops {
    /// Executed by the busiest device in einsums and attention, and by a device
    /// on average.
    double device = 0, mean = 0;
    /// FLOPs of the whole mesh, each useful product once.
    double model = 0;
    std::optional<double> mfu, hfu;
    /// MFU where causal attention counts as if nothing were masked, as most
    /// published figures do.
    std::optional<double> mfuFullAttention;
    /// FLOPs of the model.
    std::optional<double> perToken;

    /// The busiest device's FLOPs over the mean; 1 if all execute alike.
    double imbalance() const { return mean > 0 ? device / mean : 1; }
  } flops;

  /// The step against one of the machine's critical intensities: FLOPs of the
  /// matrix units for each byte that HBM moves, or that a network could have
  /// moved while it was busy.
  struct Roofline {
    /// `hbm`, or a physical axis.
    std::string over;
    std::optional<double> intensity;
    double critical = 0;
  };
  /// Empty without matrix work.
  std::vector<Roofline> rooflines;

  struct Price {
    std::optional<double> usd, usdPerMillionTokens;
  } price;

  struct Memory {
    int64_t peak = 0;
    int64_t capacity = 0;
    /// Bytes of the capacity that the runtime takes; no part of `peak`.
    int64_t reserved = 0;
    /// The `--memory-limit`, if given: `fits` then compares with it.
    std::optional<int64_t> limit;
    bool fits = true;
    int64_t weights = 0, gradients = 0, optimizer = 0, saved = 0, states = 0,
            inputs = 0, activations = 0, buffers = 0;
    std::string peakName, peakLoc;
    /// Alive at the peak, the largest first.
    std::vector<LiveTensor> live;
    /// A tensor that is alive while items run, by their indices in `items`, the
    /// first and last one included.
    struct Span {
      LiveTensor tensor;
      unsigned first = 0, last = 0;
    };
    /// With `ReportOptions::timeline`: those of all tensors, in the order of
    /// their first items, then the largest first. While an item runs, bytes of
    /// a kind add up to its `memory`.
    std::vector<Span> spans;
    /// Time of a step, of the objective, if a device had kMoreMemory more;
    /// absent if that is no less, or unknown.
    std::optional<double> withMore;

    int64_t usable() const { return capacity - reserved; }
    int64_t allowed() const { return limit.value_or(usable()); }
    /// Plans have what the runtime leaves, not all of it and no other limit.
    bool sharesCapacity() const { return !limit && reserved > 0; }
    /// ` beside the 2.40 GB reserved`, behind what a plan may take.
    std::string reservedText() const;
  } memory;

  /// A change that was tried so that the program fits.
  struct WayOut {
    /// `limit`, `search`, `pins`, `padding`, `dim` or `mesh`.
    std::string kind;
    /// For the command line, `--dim B=64`; of pins: whose go, in words.
    std::string change;
    /// The plan that is then found.
    bool fits = false;
    std::string status;
    int64_t peak = 0, allowed = 0;
    double scheduled = 0;
  };
  /// Facts of a plan that does not fit.
  struct Shortfall {
    /// No `--memory-limit` below this works, and the plan's peak does; absent
    /// if nothing is proven.
    std::optional<int64_t> leastLimit;
    /// The smallest changes first, each planned.
    std::vector<WayOut> waysOut;
  };
  std::optional<Shortfall> shortfall;

  struct Traffic {
    double hbm = 0;
    /// Sent by one device, by mesh axes as in `Time::network`.
    std::vector<std::pair<std::string, double>> network;
  } traffic;

  struct Plan {
    std::string status, objective;
    double value = 0;
    std::optional<double> bound, gap;
    /// Seconds; only if they were limited.
    std::optional<double> search;
    /// Which plans: `all`, `around merged axes` or `nothing`.
    std::string searched = "nothing";
    /// Nothing was searched although that was asked for.
    bool isPropagated = false;
    /// The time ended before the search had a plan that fits: whether there is
    /// one is not known.
    bool noneInTime = false;
  } plan;

  /// Work that the plan seems to do in vain, found without another plan.
  struct Note {
    /// `gathered-then-sliced`, ... (Suspects.h).
    std::string kind;
    std::string text, loc;
    /// Its time in a step, and the time saved if the step is priced without it.
    Picoseconds cost = 0, saves = 0;
  };
  std::vector<Note> notes;

  /// Facts of a program that was planned from a plan (`--plan`).
  struct Given {
    /// The plan's file, and how it was taken: `pins` or `start`.
    std::string file, as;
    /// Time of a step, of the objective, with what the plan says, and without;
    /// absent if there is none that fits.
    std::optional<double> value, reoptimised;

    /// The time that planning without the plan saves, if both fit.
    std::optional<double> saves() const;
  };
  std::optional<Given> given;

  /// The plan fits in memory, and is one.
  bool fits() const { return memory.fits && plan.status != "infeasible"; }
  /// The mesh that `mesh auto` chose, as a program says it; empty without.
  std::string chosenMesh() const;
  /// `X = 8 does not divide B = 63`: the first extent larger than an axis that
  /// does not divide it, so that padding allows more.
  std::optional<std::string> undivided() const;

  struct Repeat {
    std::string index;
    int64_t count = 1;
    /// Enclosing repeat, or -1.
    int parent = -1;
  };
  std::vector<Repeat> repeats;

  /// A stretch of the step without repeats in it; of a repeat, of one
  /// iteration.
  struct Section {
    int repeat = -1;
    int64_t iteration = 0;
    /// Since the step began, as its events.
    Picoseconds start = 0, end = 0;
    struct Event {
      unsigned item = 0;
      Picoseconds start = 0, end = 0;
    };
    /// Everything that ran then at least in part, in the order of starting.
    std::vector<Event> events;
  };
  /// Only if asked for.
  std::vector<Section> timeline;

  std::vector<ReportTensor> tensors;
  /// Parts and collectives in program order.
  std::vector<ReportItem> items;
};

/// `measured`, `borrowed`, `missing`.
llvm::StringRef stringify(Report::Calibration::Provenance provenance);

/// `weight`, `communication buffer`, ...
llvm::StringRef stringify(MemoryKind kind);

/// `ffn.shd:7:8`; empty if the location is not in a file.
std::string locationText(mlir::Location loc);

struct ReportOptions {
  /// As on the command line.
  std::string file;
  /// Bytes per device; the machine's capacity if absent.
  std::optional<int64_t> memoryLimit;
  /// Fill `Report::timeline`.
  bool timeline = false;
  /// The stages in which the program runs; null if it has none.
  const StagePlan *stages = nullptr;
  /// A measured time of the step, for `Report::measured`.
  std::optional<double> measuredStep = std::nullopt;
};

/// Collects the facts of a program whose plan is explicit: shardings in types,
/// collectives with `cost`, groups with `shd.group_cost`. `model` is of the
/// program's mesh on its machine.
Report buildReport(shd::ProgramOp program, const CollectiveModel &model,
                   const ScheduledProgram &scheduled,
                   const ReportOptions &options);
/// The same of a compilation, with its memory limit; nothing after an error.
std::optional<Report> buildReport(Compilation &compilation,
                                  ReportOptions options);

/// `recompute a, h`, of values as shd.training names them.
std::string recomputeLabel(llvm::ArrayRef<std::string> names);

/// The smallest limit that the plan of a report with a shortfall fits in, and
/// what is proven of smaller ones.
std::string leastLimitText(const Report &report);

/// The report for programs: docs/CommandLine.md#the-json-report.
void printJson(llvm::raw_ostream &os, const Report &report);

/// The report for people, at most 120 columns; escapes for colours only if
/// `colour`.
void printText(llvm::raw_ostream &os, const Report &report, bool colour);

/// Emits an error at the peak, with the largest tensors there, if the plan does
/// not fit in memory; success if it fits.
llvm::LogicalResult checkFits(const Report &report, mlir::Location peakLoc);

} // namespace shardc

#endif // SHARDC_REPORT_REPORT_H
