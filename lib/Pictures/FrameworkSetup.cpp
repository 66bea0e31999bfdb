//===- FrameworkSetup.cpp - The plan that a framework's options mean ------===//

#include "shardc/Pictures/FrameworkFile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace llvm;
using namespace shardc;
using Role = AxisRoles::Role;
using Zero = AxisRoles::Zero;

namespace {

/// Devices along each kind of axis.
struct Degrees {
  int64_t stages = 1, replicated = 1, sharded = 1, experts = 1, context = 1,
          tensor = 1;
  bool splitsSequences = false;

  int64_t ranks() const { return replicated * sharded * experts; }
};

class SetupReader {
public:
  SetupReader(FrameworkFile &file, const PlannedStep &step)
      : file(file), step(step) {}

  std::optional<FrameworkSetup> run();

private:
  void readMegatron();
  void readMegatronData(int64_t ranks);
  void readMegatronRemat();
  void readTorchtitan();
  void readTorchtitanPipeline();
  void readMaxText();
  void nameAxes();

  int64_t number(StringRef name, int64_t otherwise = 1);
  int64_t degree(StringRef name, int64_t otherwise = 1);
  int64_t maxTextDegree(StringRef name);
  StringRef textOf(StringRef name, StringRef otherwise = "") const;
  bool isOn(StringRef name);
  bool has(StringRef name) const { return file.options.contains(name.str()); }
  void fail(StringRef name, const Twine &message);
  void expect(StringRef name, int64_t expected, const Twine &subject);
  void checkChips(StringRef name, int64_t devices);
  void readMicrobatches(StringRef name, int64_t size, int64_t batch);
  void readChunks(StringRef name, int64_t chunks);

  FrameworkFile &file;
  const PlannedStep &step;
  FrameworkSetup setup;
  Degrees degrees;
};

} // namespace

/// An error at an option, or at the start of the file if it has none of this
/// name.
void SetupReader::fail(StringRef name, const Twine &message) {
  auto found = file.options.find(name.str());
  size_t offset = found == file.options.end() ? 0 : found->second.offset;
  file.errors.push_back({message.str(), offset});
}

StringRef SetupReader::textOf(StringRef name, StringRef otherwise) const {
  auto found = file.options.find(name.str());
  return found == file.options.end() ? otherwise
                                     : StringRef(found->second.text);
}

bool SetupReader::isOn(StringRef name) {
  if (!has(name))
    return false;
  StringRef text = textOf(name);
  if (text.empty() || text.equals_insensitive("true"))
    return true;
  if (!text.equals_insensitive("false"))
    fail(name, "'" + name + "' expects true or false, found '" + text + "'");
  return false;
}

int64_t SetupReader::number(StringRef name, int64_t otherwise) {
  if (!has(name))
    return otherwise;
  int64_t value = 0;
  if (!textOf(name).getAsInteger(10, value) && value >= 1 &&
      value <= int64_t(1) << 40)
    return value;
  fail(name, "'" + name + "' expects a number of at least 1, found '" +
                 textOf(name) + "'");
  return otherwise;
}

/// A number that divides the chips of the machine.
int64_t SetupReader::degree(StringRef name, int64_t otherwise) {
  int64_t value = number(name, otherwise);
  if (step.chips % value == 0)
    return value;
  fail(name, "'" + name + "' is " + Twine(value) +
                 ", which does not divide the machine's " + Twine(step.chips) +
                 " chips");
  return 1;
}

void SetupReader::expect(StringRef name, int64_t expected,
                         const Twine &subject) {
  if (!has(name))
    return;
  int64_t found = number(name, expected);
  if (found != expected)
    fail(name, "'" + name + "' is " + Twine(found) + ", but " + subject + " " +
                   Twine(expected));
}

void SetupReader::checkChips(StringRef name, int64_t devices) {
  if (devices != step.chips)
    fail(name, "degrees of parallelism multiply to " + Twine(devices) +
                   " devices, but the machine has " + Twine(step.chips) +
                   " chips");
}

/// From the sequences of a microbatch of one data-parallel rank, and those of
/// the step.
void SetupReader::readMicrobatches(StringRef name, int64_t size,
                                   int64_t batch) {
  int64_t ofAll = size * degrees.ranks();
  if (batch % ofAll == 0) {
    setup.microbatches = batch / ofAll;
    return;
  }
  fail(name, "a batch of " + Twine(batch) +
                 " sequences is not whole microbatches of " + Twine(size) +
                 " on " + Twine(degrees.ranks()) + " data-parallel ranks");
}

void SetupReader::readChunks(StringRef name, int64_t chunks) {
  if (chunks < 1)
    fail(name, "'" + name + "' leaves stages without layers: the program has " +
                   Twine(step.layers));
  setup.roles.hasEqualLayers = true;
  setup.schedule =
      chunks > 1 ? "interleaved(" + std::to_string(chunks) + ")" : "1f1b";
}

//===----------------------------------------------------------------------===//
// Megatron-LM
//===----------------------------------------------------------------------===//

void SetupReader::readMegatronData(int64_t ranks) {
  StringRef strategy = textOf("data-parallel-sharding-strategy", "no_shard");
  bool isFsdp = isOn("use-megatron-fsdp");
  if (has("data-parallel-sharding-strategy") && !isFsdp)
    fail("data-parallel-sharding-strategy",
         "'data-parallel-sharding-strategy' expects 'use-megatron-fsdp'");
  Zero zero = isOn("use-distributed-optimizer") ? Zero::Optimizer : Zero::None;
  if (strategy == "optim_grads_params")
    zero = Zero::Weights;
  else if (strategy == "optim_grads")
    zero = Zero::Gradients;
  else if (strategy == "optim")
    zero = Zero::Optimizer;
  else if (strategy != "no_shard")
    fail("data-parallel-sharding-strategy",
         "'data-parallel-sharding-strategy' expects no_shard, optim, "
         "optim_grads or optim_grads_params, found '" +
             strategy + "'");
  setup.roles.zero = zero;
  int64_t instances = number("num-distributed-optimizer-instances");
  if (zero == Zero::None && instances > 1)
    fail("num-distributed-optimizer-instances",
         "'num-distributed-optimizer-instances' expects "
         "'use-distributed-optimizer'");
  if (ranks % (instances * degrees.experts) != 0) {
    fail(instances > 1 ? "num-distributed-optimizer-instances"
                       : "expert-model-parallel-size",
         Twine(instances) + " instances of " + Twine(degrees.experts) +
             " devices with experts do not divide " + Twine(ranks) +
             " data-parallel ranks");
    return;
  }
  if (zero == Zero::None)
    degrees.replicated = ranks / degrees.experts;
  else {
    degrees.replicated = instances;
    degrees.sharded = ranks / instances / degrees.experts;
  }
}

void SetupReader::readMegatronRemat() {
  StringRef granularity = textOf("recompute-granularity");
  setup.remat = "none";
  if (granularity == "full") {
    int64_t layers = number("recompute-num-layers");
    StringRef method = textOf("recompute-method", "uniform");
    if (method != "uniform")
      fail("recompute-method",
           "'recompute-method' " + method + " is not supported yet");
    setup.remat = layers > 1 ? "every(" + std::to_string(layers) + ")" : "full";
  } else if (granularity == "selective") {
    SmallVector<StringRef> modules;
    textOf("recompute-modules", "core_attn")
        .split(modules, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef module : modules)
      if (module == "core_attn")
        setup.recomputesAttention = true;
      else if (module == "layernorm")
        setup.recomputesNorms = true;
      else
        fail("recompute-modules",
             "'recompute-modules' " + module + " is not supported yet");
  } else if (!granularity.empty()) {
    fail("recompute-granularity",
         "'recompute-granularity' " + granularity + " is not supported yet");
  }
}

/// Chunks of all stages in a layout such as `Et*3|(tt|)*29,m|L`, where a group
/// stands as often as it says.
static int64_t chunksOf(StringRef layout) {
  uint64_t chunks = 1;
  while (!layout.empty()) {
    StringRef part = layout.take_front();
    if (part == "(")
      part = layout.take_until([](char c) { return c == ')'; });
    layout = layout.substr(part.size());
    layout.consume_front(")");
    uint64_t times = 1;
    if (layout.consume_front("*"))
      layout.consumeInteger(10, times);
    chunks = SaturatingMultiplyAdd<uint64_t>(part.count('|'), times, chunks);
  }
  return std::min<uint64_t>(chunks, std::numeric_limits<int64_t>::max());
}

void SetupReader::readMegatron() {
  degrees.tensor = degree("tensor-model-parallel-size");
  degrees.context = degree("context-parallel-size");
  degrees.stages = degree("pipeline-model-parallel-size");
  degrees.experts = degree("expert-model-parallel-size");
  degrees.splitsSequences = isOn("sequence-parallel");
  if (degrees.tensor == 1 && degrees.splitsSequences)
    fail("sequence-parallel", "'sequence-parallel' expects a "
                              "'tensor-model-parallel-size' above 1");
  if (number("expert-tensor-parallel-size", degrees.tensor) != degrees.tensor)
    fail("expert-tensor-parallel-size",
         "'expert-tensor-parallel-size' other than "
         "'tensor-model-parallel-size' is not supported yet");
  int64_t model = degrees.tensor * degrees.context * degrees.stages;
  if (step.chips % model != 0) {
    checkChips("tensor-model-parallel-size", model);
    return;
  }
  readMegatronData(step.chips / model);
  expect("seq-length", step.length, "sequences of the program have");
  expect("global-batch-size", step.batch, "the program's batch is");
  readMicrobatches("micro-batch-size", number("micro-batch-size"), step.batch);
  readMegatronRemat();
  setup.offloads = isOn("optimizer-cpu-offload");
  if (degrees.stages == 1)
    return;
  StringRef layout = textOf("pipeline-model-parallel-layout");
  if (!layout.empty()) {
    readChunks("pipeline-model-parallel-layout",
               chunksOf(layout) / degrees.stages);
    setup.roles.hasEqualLayers = false;
  } else if (has("num-layers-per-virtual-pipeline-stage"))
    readChunks("num-layers-per-virtual-pipeline-stage",
               step.layers / degrees.stages /
                   number("num-layers-per-virtual-pipeline-stage"));
  else
    readChunks("num-virtual-stages-per-pipeline-rank",
               number("num-virtual-stages-per-pipeline-rank"));
}

//===----------------------------------------------------------------------===//
// torchtitan
//===----------------------------------------------------------------------===//

void SetupReader::readTorchtitanPipeline() {
  StringRef schedule = textOf("pipeline_parallel_schedule", "1F1B");
  int64_t perStage = number("pipeline_parallel_layers_per_stage",
                            step.layers / degrees.stages);
  int64_t chunks =
      step.layers / degrees.stages / std::max<int64_t>(1, perStage);
  setup.roles.hasEqualLayers = true;
  if (schedule == "GPipe")
    setup.schedule = "gpipe";
  else if (schedule == "1F1B" || schedule == "Interleaved1F1B")
    readChunks("pipeline_parallel_layers_per_stage", chunks);
  else
    fail("pipeline_parallel_schedule",
         "'pipeline_parallel_schedule' " + schedule + " is not supported yet");
  if (schedule != "Interleaved1F1B" && chunks > 1)
    fail("pipeline_parallel_layers_per_stage",
         "'pipeline_parallel_layers_per_stage' makes " + Twine(chunks) +
             " chunks a stage, which '" + schedule + "' does not run");
  for (StringRef less : {"pipeline_parallel_first_stage_less_layers",
                         "pipeline_parallel_last_stage_less_layers"})
    if (has(less) && textOf(less) != "0")
      fail(less, "'" + less + "' above 0 is not supported yet");
  expect("num_pp_microbatches", setup.microbatches,
         "the tokens of a microbatch make");
}

void SetupReader::readTorchtitan() {
  degrees.tensor = degree("tensor_parallel_degree");
  degrees.context = degree("context_parallel_degree");
  degrees.stages = degree("pipeline_parallel_degree");
  degrees.experts = degree("expert_parallel_degree");
  degrees.replicated = degree("data_parallel_replicate_degree");
  degrees.splitsSequences =
      degrees.tensor > 1 &&
      (!has("enable_sequence_parallel") || isOn("enable_sequence_parallel"));
  int64_t others =
      degrees.tensor * degrees.context * degrees.stages * degrees.replicated;
  constexpr StringLiteral kShard = "data_parallel_shard_degree";
  int64_t sharded = has(kShard) && textOf(kShard) != "-1"
                        ? degree(kShard)
                        : std::max<int64_t>(1, step.chips / others);
  checkChips(kShard, others * sharded);
  StringRef reshard = textOf("fsdp_reshard_after_forward", "default");
  bool isNever =
      reshard == "never" || (reshard == "default" && degrees.stages > 1);
  if (reshard != "never" && reshard != "default" && reshard != "always")
    fail("fsdp_reshard_after_forward",
         "'fsdp_reshard_after_forward' expects default, always or never, "
         "found '" +
             reshard + "'");
  setup.roles.zero = sharded * degrees.context == 1 ? Zero::None
                     : isNever                      ? Zero::Gradients
                                                    : Zero::Weights;
  if (sharded % degrees.experts != 0)
    fail("expert_parallel_degree",
         "'expert_parallel_degree' of " + Twine(degrees.experts) +
             " does not divide 'data_parallel_shard_degree' of " +
             Twine(sharded));
  degrees.sharded = std::max<int64_t>(1, sharded / degrees.experts);
  expect("max_context_length", step.length, "sequences of the program have");
  expect("num_tokens_per_train_step", step.batch * step.length,
         "a step of the program has");
  constexpr StringLiteral kTokens = "num_tokens_per_microbatch_per_dp_rank";
  int64_t tokens = number(kTokens, step.length);
  if (tokens % step.length != 0)
    fail(kTokens, "'" + kTokens + "' of " + Twine(tokens) +
                      " is no whole sequences of " + Twine(step.length));
  else
    readMicrobatches(kTokens, tokens / step.length, step.batch);
  StringRef checkpoint = textOf("activation_checkpoint");
  if (checkpoint == "FullAC.Config()")
    setup.remat = "full";
  else if (checkpoint == "None")
    setup.remat = "none";
  else if (!checkpoint.empty())
    fail("activation_checkpoint",
         "'activation_checkpoint' " + checkpoint + " is not supported yet");
  if (degrees.stages > 1)
    readTorchtitanPipeline();
}

//===----------------------------------------------------------------------===//
// MaxText
//===----------------------------------------------------------------------===//

int64_t SetupReader::maxTextDegree(StringRef name) {
  return degree(("ici_" + name + "_parallelism").str()) *
         degree(("dcn_" + name + "_parallelism").str());
}

void SetupReader::readMaxText() {
  degrees.stages = maxTextDegree("pipeline");
  degrees.replicated = maxTextDegree("data");
  degrees.sharded = maxTextDegree("fsdp");
  degrees.context = maxTextDegree("context");
  degrees.experts = maxTextDegree("expert");
  int64_t sequences = maxTextDegree("tensor_sequence");
  degrees.tensor = maxTextDegree("tensor");
  if (degrees.tensor > 1 && sequences > 1)
    fail("ici_tensor_sequence_parallelism",
         "'tensor_sequence' beside 'tensor' parallelism is not supported yet");
  degrees.splitsSequences = sequences > 1;
  degrees.tensor *= sequences;
  checkChips("ici_fsdp_parallelism", degrees.stages * degrees.ranks() *
                                         degrees.context * degrees.tensor);
  bool isZero1 = isOn("shard_optimizer_over_data");
  bool splitsWeights = degrees.sharded * degrees.context * degrees.experts > 1;
  if (splitsWeights) {
    setup.roles.zero = Zero::Weights;
    if (isZero1)
      fail("shard_optimizer_over_data",
           "'shard_optimizer_over_data' beside 'fsdp', 'context' or 'expert' "
           "parallelism is not supported yet");
  } else if (isZero1) {
    setup.roles.zero = Zero::Optimizer;
    std::swap(degrees.sharded, degrees.replicated);
  }
  expect("max_target_length", step.length, "sequences of the program have");
  int64_t passes = number("gradient_accumulation_steps");
  setup.microbatches = passes;
  double perDevice = 0;
  if (has("per_device_batch_size")) {
    if (textOf("per_device_batch_size").getAsDouble(perDevice))
      fail("per_device_batch_size",
           "'per_device_batch_size' expects a number, found '" +
               textOf("per_device_batch_size") + "'");
    else if (std::llround(perDevice * double(step.chips) * double(passes)) !=
             step.batch)
      fail("per_device_batch_size",
           "'per_device_batch_size' of " + textOf("per_device_batch_size") +
               " makes " +
               Twine(std::llround(perDevice * double(step.chips) *
                                  double(passes))) +
               " sequences, but the program's batch is " + Twine(step.batch));
  }
  if (degrees.stages > 1) {
    if (passes > 1)
      fail("gradient_accumulation_steps",
           "'gradient_accumulation_steps' beside a pipeline is not supported "
           "yet");
    if (number("num_pipeline_repeats") > 1)
      fail("num_pipeline_repeats",
           "'num_pipeline_repeats' above 1 is not supported yet");
    setup.microbatches = number("num_pipeline_microbatches", degrees.stages);
    setup.schedule = "gpipe";
    setup.roles.hasEqualLayers = true;
  }
  StringRef policy = textOf("remat_policy", "full");
  if (policy == "full")
    setup.remat = "full";
  else if (policy == "minimal_with_context")
    setup.remat = "products";
  else
    fail("remat_policy", "'remat_policy' " + policy + " is not supported yet");
  setup.offloads = isOn("optimizer_memory_host_offload");
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

/// The order of ranks: tensor parallelism innermost, stages outermost.
void SetupReader::nameAxes() {
  std::string axes;
  auto add = [&](StringRef name, int64_t size, std::optional<Role> role) {
    if (size == 1)
      return;
    axes +=
        (axes.empty() ? "" : ", ") + name.str() + "=" + std::to_string(size);
    if (role)
      setup.roles.axes.push_back({name.str(), *role});
    else
      setup.stages = name.str();
  };
  add("pp", degrees.stages, std::nullopt);
  add("rep", degrees.replicated, Role::Replicated);
  add("dp", degrees.sharded, Role::Sharded);
  add("ep", degrees.experts, Role::Expert);
  add("cp", degrees.context, Role::Context);
  add("tp", degrees.tensor,
      degrees.splitsSequences ? Role::TensorSequence : Role::Tensor);
  setup.mesh = "[" + (axes.empty() ? "dp=1" : axes) + "]";
}

std::optional<FrameworkSetup> SetupReader::run() {
  switch (file.framework) {
  case Framework::Megatron:
    readMegatron();
    break;
  case Framework::Torchtitan:
    readTorchtitan();
    break;
  case Framework::MaxText:
    readMaxText();
    break;
  }
  nameAxes();
  if (!file.errors.empty())
    return std::nullopt;
  return setup;
}

std::optional<FrameworkSetup> shardc::planOfFile(FrameworkFile &file,
                                                 const PlannedStep &step) {
  if (file.options.empty() && file.errors.empty())
    file.errors.push_back({"expected options of Megatron-LM, torchtitan or "
                           "MaxText, found none that a plan depends on",
                           0});
  if (!file.errors.empty())
    return std::nullopt;
  return SetupReader(file, step).run();
}
