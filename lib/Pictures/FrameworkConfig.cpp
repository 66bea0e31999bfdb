//===- FrameworkConfig.cpp - The options with which frameworks run a plan -===//
//
// Names and meanings of docs/Frameworks.md, which has the commits that they are
// those of.
//
//===----------------------------------------------------------------------===//

#include "FrameworkPlan.h"
#include "ReadReport.h"
#include "shardc/Pictures/Pictures.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace shardc;
using Zero = FrameworkPlan::Zero;
using Remat = FrameworkPlan::Remat;

namespace {

/// Options in their order, and what they do not express.
struct FrameworkOptions {
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::string> differences;

  void add(StringRef name, const Twine &value = "") {
    options.push_back({name.str(), value.str()});
  }
  void differ(const Twine &text) { differences.push_back(text.str()); }
};

} // namespace

//===----------------------------------------------------------------------===//
// Megatron-LM
//===----------------------------------------------------------------------===//

/// `Et|tt|tL`: chunk by chunk, each over the stages in their order.
static std::string megatronLayout(const FrameworkPlan &plan) {
  std::vector<std::string> parts;
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk)
    for (const std::vector<int64_t> &stage : plan.layers)
      parts.push_back(
          std::string(chunk < int64_t(stage.size()) ? stage[chunk] : 0, 't'));
  parts.front() = "E" + parts.front();
  parts.back() += "L";
  return join(parts, "|");
}

static void addMegatronPipeline(const FrameworkPlan &plan,
                                FrameworkOptions &options) {
  options.add("pipeline-model-parallel-size", Twine(plan.pipeline.all));
  if (plan.pipeline.all == 1)
    return;
  if (plan.schedule != "1f1b" && plan.schedule != "interleaved")
    options.differ("the schedule '" + plan.schedule +
                   "': Megatron-LM runs 1F1B, or interleaved 1F1B");
  if (!plan.layers.empty() && !plan.splitsLayersEvenly())
    options.add("pipeline-model-parallel-layout",
                "'" + megatronLayout(plan) + "'");
  else if (plan.chunks > 1)
    options.add("num-virtual-stages-per-pipeline-rank", Twine(plan.chunks));
}

static void addMegatronZero(const FrameworkPlan &plan,
                            FrameworkOptions &options) {
  if (plan.zero == Zero::None)
    return;
  options.add("use-distributed-optimizer");
  if (plan.zero != Zero::Optimizer) {
    options.add("use-megatron-fsdp");
    options.add("data-parallel-sharding-strategy", plan.zero == Zero::Weights
                                                       ? "optim_grads_params"
                                                       : "optim_grads");
  }
  if (plan.replicated.all > 1)
    options.add("num-distributed-optimizer-instances",
                Twine(plan.replicated.all));
}

/// Frameworks that keep what every layer begins with.
static void differInSegments(const FrameworkPlan &plan,
                             FrameworkOptions &options) {
  if (plan.every > 1)
    options.differ("'every(" + std::to_string(plan.every) +
                   ")': the inputs of all layers are kept");
}

static void addMegatronRemat(const FrameworkPlan &plan,
                             FrameworkOptions &options) {
  if (plan.remat == Remat::None)
    return;
  if (plan.remat == Remat::Full) {
    options.add("recompute-granularity", "full");
    options.add("recompute-method", "uniform");
    options.add("recompute-num-layers", Twine(plan.every));
    return;
  }
  SmallVector<StringRef> modules;
  if (plan.recomputesAttention)
    modules.push_back("core_attn");
  if (plan.recomputesNorms)
    modules.push_back("layernorm");
  if (!modules.empty()) {
    options.add("recompute-granularity", "selective");
    options.add("recompute-modules", join(modules, " "));
  }
  std::vector<std::string> others = plan.recomputedMatmuls;
  append_range(others, plan.recomputedOthers);
  if (!others.empty())
    options.differ("the plan also computes " + join(others, ", ") +
                   " again, which no module of --recompute-modules is");
}

/// Megatron-LM deals sequences in zigzag order in any case.
static void addMegatronContext(const FrameworkPlan &plan,
                               FrameworkOptions &options) {
  options.add("context-parallel-size", Twine(plan.context.all));
  if (plan.context.all == 1)
    return;
  options.add("cp-comm-type", plan.rings ? "p2p" : "allgather");
  if (plan.isUnbalanced)
    options.differ("sequences in their own order: Megatron-LM balances causal "
                   "attention");
}

static FrameworkOptions megatronOptions(const FrameworkPlan &plan) {
  FrameworkOptions options;
  options.add("tensor-model-parallel-size", Twine(plan.tensor.all));
  if (plan.tensor.all > 1 && plan.splitsSequences)
    options.add("sequence-parallel");
  addMegatronPipeline(plan, options);
  addMegatronContext(plan, options);
  if (plan.hasExperts) {
    options.add("expert-model-parallel-size", Twine(plan.experts.all));
    options.add("expert-tensor-parallel-size", Twine(plan.expertTensor));
  }
  options.add("seq-length", Twine(plan.length));
  if (plan.microbatchSize)
    options.add("micro-batch-size", Twine(plan.microbatchSize));
  options.add("global-batch-size", Twine(plan.batch));
  addMegatronZero(plan, options);
  addMegatronRemat(plan, options);
  if (plan.offloads)
    options.add("optimizer-cpu-offload");
  return options;
}

static void printMegatron(raw_ostream &os, const FrameworkOptions &options) {
  os << "PLAN_ARGS=(\n";
  for (const auto &[name, value] : options.options)
    os << "  --" << name << (value.empty() ? "" : " ") << value << '\n';
  os << ")\n";
}

//===----------------------------------------------------------------------===//
// torchtitan
//===----------------------------------------------------------------------===//

static void addTorchtitanPipeline(const FrameworkPlan &plan,
                                  FrameworkOptions &options) {
  options.add("pipeline_parallel_degree", Twine(plan.pipeline.all));
  if (plan.pipeline.all == 1)
    return;
  StringRef schedule = StringSwitch<StringRef>(plan.schedule)
                           .Case("1f1b", "1F1B")
                           .Case("gpipe", "GPipe")
                           .Case("interleaved", "Interleaved1F1B")
                           .Default("");
  if (schedule.empty())
    options.differ("the schedule '" + plan.schedule +
                   "', which torch.distributed.pipelining lacks");
  else
    options.add("pipeline_parallel_schedule", "\"" + schedule + "\"");
  if (!plan.layers.empty() && plan.splitsLayersEvenly()) {
    options.add("pipeline_parallel_layers_per_stage",
                Twine(plan.layers.front().front()));
    options.add("pipeline_parallel_first_stage_less_layers", "0");
    options.add("pipeline_parallel_last_stage_less_layers", "0");
  } else {
    options.differ("stages of different numbers of layers: list the modules of "
                   "each in module_fqns_per_model_part");
  }
  options.add("num_pp_microbatches", Twine(plan.microbatches));
}

static FrameworkOptions torchtitanOptions(const FrameworkPlan &plan) {
  FrameworkOptions options;
  bool shards = plan.zero == Zero::Weights || plan.zero == Zero::Gradients;
  Degree sharded = shards ? plan.sharded : Degree();
  options.add("data_parallel_replicate_degree",
              Twine(plan.dataRanks() / sharded.all));
  options.add("data_parallel_shard_degree", Twine(sharded.all));
  if (plan.zero == Zero::Optimizer)
    options.differ("ZeRO-1: torchtitan keeps the optimizer state whole on each "
                   "replica, or splits weights, gradients and state (FSDP)");
  if (shards)
    options.add("fsdp_reshard_after_forward",
                plan.zero == Zero::Weights ? "\"always\"" : "\"never\"");
  options.add("tensor_parallel_degree", Twine(plan.tensor.all));
  if (plan.tensor.all > 1)
    options.add("enable_sequence_parallel",
                plan.splitsSequences ? "True" : "False");
  options.add("context_parallel_degree", Twine(plan.context.all));
  if (plan.context.all > 1)
    options.add("context_parallel_load_balancer",
                plan.isBalanced ? "\"headtail\"" : "None");
  if (plan.hasExperts)
    options.add("expert_parallel_degree", Twine(plan.experts.all));
  addTorchtitanPipeline(plan, options);
  if (!shards && plan.context.all > 1)
    options.differ("weights whole along the context axis: torchtitan splits "
                   "them over it, too");
  if (plan.offloads)
    options.differ("'offload = optimizer': the optimizer's state stays on the "
                   "devices");
  if (plan.remat == Remat::Some)
    options.differ("'" + plan.rematText +
                   "': torchtitan's selective checkpointing has its own list "
                   "of operations");
  differInSegments(plan, options);
  return options;
}

static void printTorchtitan(raw_ostream &os, const FrameworkPlan &plan,
                            const FrameworkOptions &options) {
  StringRef checkpoint = plan.remat == Remat::Full   ? "FullAC"
                         : plan.remat == Remat::Some ? "SelectiveAC"
                                                     : "";
  os << "from torchtitan.config import ParallelismConfig\n";
  if (!checkpoint.empty())
    os << "from torchtitan.distributed.activation_checkpoint import "
       << checkpoint << '\n';
  os << "from torchtitan.trainer import Trainer\n\n\n"
     << "def with_plan(config: Trainer.Config) -> Trainer.Config:\n"
     << "    \"\"\"A model's configuration, such as llama3_8b(), that runs the "
        "plan.\"\"\"\n";
  if (plan.microbatchSize)
    os << "    config.training.num_tokens_per_microbatch_per_dp_rank = "
       << plan.microbatchSize << " * " << plan.length << '\n';
  os << "    config.training.num_tokens_per_train_step = " << plan.batch
     << " * " << plan.length << '\n'
     << "    config.training.max_context_length = " << plan.length << '\n'
     << "    config.parallelism = ParallelismConfig(\n";
  for (const auto &[name, value] : options.options)
    os << "        " << name << '=' << value << ",\n";
  os << "    )\n    config.activation_checkpoint = "
     << (checkpoint.empty() ? "None" : (checkpoint + ".Config()").str())
     << "\n    return config\n";
}

//===----------------------------------------------------------------------===//
// MaxText
//===----------------------------------------------------------------------===//

static void addMaxTextDegree(StringRef name, Degree degree,
                             FrameworkOptions &options) {
  options.add(("ici_" + name + "_parallelism").str(), Twine(degree.inner));
  options.add(("dcn_" + name + "_parallelism").str(), Twine(degree.outer()));
}

static void addMaxTextPipeline(const FrameworkPlan &plan,
                               FrameworkOptions &options) {
  addMaxTextDegree("pipeline", plan.pipeline, options);
  if (plan.pipeline.all == 1)
    return;
  options.add("num_pipeline_microbatches", Twine(plan.microbatches));
  if (!plan.layers.empty() && plan.splitsLayersEvenly()) {
    options.add("num_layers_per_pipeline_stage",
                Twine(plan.layers.front().front()));
    options.add("num_pipeline_repeats", Twine(plan.chunks));
  } else {
    options.differ("stages of different numbers of layers; pipeline_parallel_"
                   "layers can leave some out of the pipeline");
  }
  if (plan.schedule != "gpipe")
    options.differ(
        "the schedule '" + plan.schedule +
        "': MaxText runs all forwards of its circular pipeline before "
        "the backwards");
}

/// MaxText has an axis of its own for experts, which splits the batch, too.
static void takeExperts(const FrameworkPlan &plan, Degree &batch,
                        FrameworkOptions &options) {
  Degree experts = plan.experts;
  bool isOfBatch = plan.batchOfExperts.all == experts.all &&
                   batch.all % experts.all == 0 &&
                   batch.inner % experts.inner == 0;
  if (!isOfBatch) {
    options.differ("experts over " + Twine(experts.all) +
                   " devices that do not split the batch with FSDP: MaxText's "
                   "expert axis is one of its own");
    return;
  }
  batch = {batch.all / experts.all, batch.inner / experts.inner};
  addMaxTextDegree("expert", experts, options);
}

static FrameworkOptions maxTextOptions(const FrameworkPlan &plan) {
  FrameworkOptions options;
  bool isFsdp = plan.zero == Zero::Weights;
  Degree data = plan.replicated;
  if (!isFsdp)
    data.multiply(plan.sharded);
  Degree fsdp = isFsdp ? plan.sharded : Degree();
  if (plan.hasExperts && plan.experts.all > 1)
    takeExperts(plan, isFsdp ? fsdp : data, options);
  addMaxTextDegree("data", data, options);
  addMaxTextDegree("fsdp", fsdp, options);
  addMaxTextDegree("tensor", plan.splitsSequences ? Degree() : plan.tensor,
                   options);
  addMaxTextDegree("tensor_sequence",
                   plan.splitsSequences ? plan.tensor : Degree(), options);
  addMaxTextDegree("context", plan.context, options);
  if (plan.context.all > 1) {
    options.add("context_parallel_strategy",
                plan.rings ? "'ring'" : "'all_gather'");
    options.add("context_parallel_load_balance",
                plan.isBalanced ? "true" : "false");
  }
  addMaxTextPipeline(plan, options);
  if (plan.zero == Zero::Optimizer || plan.zero == Zero::Gradients) {
    options.add("shard_optimizer_over_data", "true");
    if (plan.replicated.all > 1)
      options.differ("replicas beside ZeRO-1: all of the batch's axes split "
                     "the optimizer's state");
    if (plan.zero == Zero::Gradients)
      options.differ("ZeRO-2: gradients are whole");
  }
  bool accumulates = plan.pipeline.all == 1 && plan.microbatches > 1;
  int64_t passes = accumulates ? plan.microbatches : 1;
  options.add("per_device_batch_size",
              formatv("{0:f9}", double(plan.batch) / double(plan.devices) /
                                    double(passes))
                  .str());
  options.add("gradient_accumulation_steps", Twine(passes));
  options.add("max_target_length", Twine(plan.length));
  options.add("remat_policy", plan.remat == Remat::None || plan.keepsProducts()
                                  ? "'minimal_with_context'"
                                  : "'full'");
  if (plan.offloads)
    options.add("optimizer_memory_host_offload", "true");
  if (!isFsdp && plan.context.all * plan.experts.all > 1)
    options.differ("weights whole along the axes of context or experts: "
                   "MaxText splits them over these, too");
  if (plan.remat == Remat::None)
    options.differ("nothing runs again in the plan: 'minimal_with_context' "
                   "keeps matrix products only");
  if (plan.remat == Remat::Some && !plan.keepsProducts())
    options.differ("'" + plan.rematText +
                   "': with remat_policy 'custom', set MaxText's names of the "
                   "kept tensors to 'device'");
  differInSegments(plan, options);
  return options;
}

static void printMaxText(raw_ostream &os, const FrameworkOptions &options) {
  for (const auto &[name, value] : options.options)
    os << name << ": " << value << '\n';
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

/// Names come from a report: none may end the comment.
static std::string onOneLine(StringRef text) {
  std::string line = text.str();
  for (char &c : line)
    if (c >= 0 && c < ' ')
      c = ' ';
  return line;
}

/// The plan of a report and the options for it; an error if it is none of a
/// training step.
static Expected<std::pair<FrameworkPlan, FrameworkOptions>>
optionsFor(Framework framework, const json::Object &report) {
  Expected<FrameworkPlan> plan = readFrameworkPlan(report);
  if (!plan)
    return plan.takeError();
  FrameworkOptions options =
      framework == Framework::Megatron     ? megatronOptions(*plan)
      : framework == Framework::Torchtitan ? torchtitanOptions(*plan)
                                           : maxTextOptions(*plan);
  std::vector<std::string> differences = plan->differences;
  append_range(differences, options.differences);
  options.differences = std::move(differences);
  return std::pair(std::move(*plan), std::move(options));
}

/// The time that a plan was chosen by, in seconds.
static double secondsOf(const json::Object &report) {
  const json::Object *plan = report.getObject("plan");
  return plan ? numberIn(*plan, "value_s") : 0;
}

static bool fits(const json::Object &report) {
  const json::Object *memory = report.getObject("memory");
  return memory && memory->getBoolean("fits").value_or(false);
}

/// `2.31 s`, with three digits.
static std::string timeText(double seconds) {
  const std::pair<double, const char *> units[] = {
      {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
  for (auto [unit, name] : units)
    if (seconds >= unit || unit == 1e-6) {
      double value = seconds / unit;
      int digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
      std::string text;
      raw_string_ostream(text) << format("%.*f ", digits, value) << name;
      return text;
    }
  llvm_unreachable("the last unit takes all");
}

/// Beside the best plan, the one that the framework expresses.
static void printComparison(raw_ostream &os, Framework framework,
                            const json::Object &best,
                            const json::Object &nearest,
                            ArrayRef<std::string> differences) {
  double a = secondsOf(best), b = secondsOf(nearest);
  // Neither search is complete: the one with fewer plans may find a better one.
  bool isFaster = b < a && fits(nearest);
  if (isFaster)
    os << "# best " << timeText(b) << ", which " << frameworkName(framework)
       << " expresses; best of a search of all plans " << timeText(a);
  else
    os << "# best " << timeText(a) << ", best that " << frameworkName(framework)
       << " expresses " << timeText(b);
  if (a > 0 && b > 0)
    os << format(" (%+.1f %%)", 100 * (isFaster ? a / b - 1 : b / a - 1));
  if (!fits(nearest))
    os << ", which does not fit in memory";
  os << ": differs in\n";
  for (const std::string &difference : differences)
    os << "# - " << onOneLine(difference) << '\n';
  os << (isFaster ? "# The other one: " : "# The best one: ")
     << onOneLine(stringIn(best, "words")) << '\n';
}

Expected<bool> shardc::expressesPlan(Framework framework, StringRef text) {
  Expected<json::Object> report = readPlanReport(text, "--emit-config");
  if (!report)
    return report.takeError();
  auto options = optionsFor(framework, *report);
  if (!options)
    return options.takeError();
  return options->second.differences.empty();
}

Error shardc::printFrameworkConfig(raw_ostream &os, Framework framework,
                                   StringRef text, StringRef nearest) {
  Expected<json::Object> best = readPlanReport(text, "--emit-config");
  if (!best)
    return best.takeError();
  auto ofBest = optionsFor(framework, *best);
  if (!ofBest)
    return ofBest.takeError();
  std::optional<json::Object> other;
  if (!nearest.empty()) {
    Expected<json::Object> report = readPlanReport(nearest, "--emit-config");
    if (!report)
      return report.takeError();
    other = std::move(*report);
  }
  auto shown = optionsFor(framework, other ? *other : *best);
  if (!shown)
    return shown.takeError();
  auto &[plan, options] = *shown;
  os << "# " << frameworkName(framework) << ": the plan of "
     << onOneLine(plan.file) << ", " << plan.devices << " devices\n# "
     << onOneLine(plan.words) << '\n';
  if (other)
    printComparison(os, framework, *best, *other, ofBest->second.differences);
  os << (options.differences.empty() ? "# All of the plan is expressed.\n"
                                     : "# Not expressed:\n");
  for (const std::string &difference : options.differences)
    os << "# - " << onOneLine(difference) << '\n';
  if (framework == Framework::Megatron)
    printMegatron(os, options);
  else if (framework == Framework::Torchtitan)
    printTorchtitan(os, plan, options);
  else
    printMaxText(os, options);
  return Error::success();
}
