//===- FrameworkPlan.cpp - A plan in the terms of frameworks --------------===//

#include "FrameworkPlan.h"
#include "ReadReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace shardc;
using Zero = FrameworkPlan::Zero;

namespace {

class FrameworkPlanReader {
public:
  explicit FrameworkPlanReader(const json::Object &report) : report(report) {}

  Expected<FrameworkPlan> read();

private:
  Error readBatch();
  void readAxes();
  void readAxis(const json::Object &axis);
  void readDataAxis(StringRef name, StringRef zero, Degree degree);
  Degree degreeOf(const json::Object &axis);
  void readExperts();
  void readTraining();
  void readRemat();
  void readStages();
  void findOddWeights();
  void findOddShards();
  void differ(const Twine &text) { plan.differences.push_back(text.str()); }

  const json::Object &report;
  FrameworkPlan plan;
  /// Axes of tensor parallelism, and those that split experts.
  StringSet<> tensorAxes, expertAxes;
  /// Axes of the batch with ZeRO.
  StringSet<> zeroAxes;
};

} // namespace

static Error failedTo(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

bool FrameworkPlan::splitsLayersEvenly() const {
  for (const std::vector<int64_t> &stage : layers)
    for (int64_t chunk : stage)
      if (chunk != layers.front().front())
        return false;
  return true;
}

/// From the first input of integers with a dimension of sequences behind that
/// of the batch.
Error FrameworkPlanReader::readBatch() {
  for (const json::Object *tensor : objectsIn(report, "tensors")) {
    std::vector<const json::Object *> dims = objectsIn(*tensor, "dims");
    if (stringIn(*tensor, "kind") != "input" ||
        !stringIn(*tensor, "dtype").starts_with("int") || dims.size() < 2)
      continue;
    plan.batch = integerIn(*dims[0], "size");
    plan.length = integerIn(*dims[1], "size");
    return Error::success();
  }
  return failedTo("--emit-config expects an input of tokens, int32[batch, "
                  "sequence], found none");
}

/// The part on the network of the innermost level is the inner one.
Degree FrameworkPlanReader::degreeOf(const json::Object &axis) {
  std::vector<const json::Object *> physical = objectsIn(report, "physical");
  StringRef innermost =
      physical.empty() ? "" : stringIn(*physical.back(), "network");
  StringSet<> inner;
  for (const json::Object *level : physical)
    if (stringIn(*level, "network") == innermost)
      inner.insert(stringIn(*level, "name"));
  Degree degree{std::max<int64_t>(1, integerIn(axis, "size")), 1};
  std::vector<const json::Object *> parts = objectsIn(axis, "parts");
  for (auto [level, part] : zip(stringsIn(axis, "on"), parts))
    if (inner.contains(level))
      degree.inner *= std::max<int64_t>(1, integerIn(*part, "size"));
  if (degree.all % degree.inner != 0)
    degree.inner = degree.all;
  return degree;
}

void FrameworkPlanReader::readDataAxis(StringRef name, StringRef text,
                                       Degree degree) {
  Zero zero = text == "ZeRO-3"   ? Zero::Weights
              : text == "ZeRO-2" ? Zero::Gradients
              : text == "ZeRO-1" ? Zero::Optimizer
                                 : Zero::None;
  if (zero == Zero::None) {
    plan.replicated.multiply(degree);
    return;
  }
  if (plan.zero != Zero::None && plan.zero != zero)
    differ("axes of the batch split different kinds of tensors; '" + name +
           "' has " + text);
  plan.zero = std::max(plan.zero, zero);
  plan.sharded.multiply(degree);
  zeroAxes.insert(name);
}

void FrameworkPlanReader::readAxis(const json::Object &axis) {
  StringRef role = stringIn(axis, "role"), name = stringIn(axis, "name");
  Degree degree = degreeOf(axis);
  plan.devices *= degree.all;
  if (degree.all == 1)
    return;
  if (axis.getBoolean("splits_experts").value_or(false)) {
    plan.experts.multiply(degree);
    expertAxes.insert(name);
    if (role == "data" || role == "none")
      plan.batchOfExperts.multiply(degree);
  }
  if (role.consume_front("mostly "))
    differ("axis '" + name + "' of " + Twine(degree.all) + " devices is " +
           role + " parallel in most of the matrix work, not in all");
  if (role == "data")
    return readDataAxis(name, stringIn(axis, "zero"), degree);
  if (role == "context") {
    StringRef keys = stringIn(axis, "keys");
    plan.rings &= keys == "ring";
    if (keys.contains("halo"))
      differ("halos of keys and values for windows: all keys are moved");
    if (keys.contains("all_to_all"))
      differ("heads of attention in exchange for the sequence: keys are moved");
    return plan.context.multiply(degree);
  }
  if (role == "pipeline")
    return plan.pipeline.multiply(degree);
  if (role.starts_with("tensor")) {
    plan.tensor.multiply(degree);
    tensorAxes.insert(name);
    plan.splitsSequences |= role == "tensor and sequence";
    return;
  }
  if (role == "none" && expertAxes.contains(name))
    return plan.sharded.multiply(degree);
  differ("axis '" + name + "' of " + Twine(degree.all) +
         " devices splits no matrix work; below it is data parallel");
  plan.replicated.multiply(degree);
}

void FrameworkPlanReader::readAxes() {
  const json::Object *mesh = report.getObject("mesh");
  if (!mesh)
    return;
  plan.rings = true;
  for (const json::Object *axis : objectsIn(*mesh, "axes"))
    readAxis(*axis);
  plan.rings &= plan.context.all > 1;
  plan.isBalanced = !objectsIn(*mesh, "zigzag").empty();
  plan.isUnbalanced =
      stringIn(report, "words").contains("leaves causal attention unbalanced");
  if (int64_t idle = integerIn(*mesh, "idle_chips"))
    differ(Twine(idle) + " chips of the machine idle");
}

/// Tensor parallelism inside experts: other axes on the weights of experts.
void FrameworkPlanReader::readExperts() {
  const json::Object *experts = report.getObject("experts");
  plan.hasExperts = experts;
  if (!experts)
    return;
  int64_t total = integerIn(*experts, "total");
  StringMap<int64_t> inside;
  for (const json::Object *tensor : objectsIn(report, "tensors")) {
    std::vector<const json::Object *> dims = objectsIn(*tensor, "dims");
    auto isExperts = [&](const json::Object *dim) {
      return integerIn(*dim, "size") == total;
    };
    if (stringIn(*tensor, "kind") != "weight" || none_of(dims, isExperts) ||
        dims.size() < 3)
      continue;
    for (const json::Object *dim : dims)
      for (const std::string &axis : stringsIn(*dim, "axes"))
        if (!isExperts(dim) && tensorAxes.contains(axis))
          inside[axis] = 1;
  }
  if (const json::Object *mesh = report.getObject("mesh"))
    for (const json::Object *axis : objectsIn(*mesh, "axes"))
      if (inside.contains(stringIn(*axis, "name")))
        plan.expertTensor *= integerIn(*axis, "size");
}

/// Kinds of what runs again, for frameworks that name these.
void FrameworkPlanReader::readRemat() {
  const json::Object &training = *report.getObject("training");
  plan.rematText = stringIn(training, "remat").str();
  plan.every = std::max<int64_t>(1, integerIn(training, "every"));
  bool keepsInputs = plan.rematText == "full" || plan.rematText == "every";
  plan.remat = plan.rematText == "none" ? FrameworkPlan::Remat::None
               : keepsInputs            ? FrameworkPlan::Remat::Full
                                        : FrameworkPlan::Remat::Some;
  for (const json::Object *op : objectsIn(report, "ops")) {
    if (stringIn(*op, "phase") != "recompute" || op->getArray("axes"))
      continue;
    if (plan.remat == FrameworkPlan::Remat::None)
      plan.remat = FrameworkPlan::Remat::Some;
    StringRef kind = stringIn(*op, "kind");
    std::vector<std::string> functions = stringsIn(*op, "fused");
    functions.push_back(stringIn(*op, "function").str());
    plan.recomputesAttention |= kind == "attention";
    bool isNorm =
        any_of(functions, [](StringRef text) { return text.contains("norm"); });
    plan.recomputesNorms |= isNorm;
    if (kind == "einsum")
      plan.recomputedMatmuls.push_back(stringIn(*op, "name").str());
    else if (kind != "attention" && !isNorm)
      plan.recomputedOthers.push_back(stringIn(*op, "name").str());
  }
}

void FrameworkPlanReader::readStages() {
  const json::Object &training = *report.getObject("training");
  StringRef schedule = stringIn(training, "schedule");
  plan.schedule =
      schedule.starts_with("interleaved") ? "interleaved" : schedule.str();
  for (const json::Object *stage : objectsIn(report, "stages")) {
    std::vector<int64_t> &layers = plan.layers.emplace_back();
    if (const json::Array *array = stage->getArray("layers"))
      for (const json::Value &value : *array)
        layers.push_back(value.getAsInteger().value_or(0));
    plan.chunks = std::max<int64_t>(plan.chunks, int64_t(layers.size()));
  }
}

/// Weights that the axes of tensor parallelism split in one part of the model
/// only.
void FrameworkPlanReader::findOddWeights() {
  if (tensorAxes.empty())
    return;
  const json::Object *experts = report.getObject("experts");
  int64_t numExperts = experts ? integerIn(*experts, "total") : 0;
  std::vector<std::string> whole;
  for (const json::Object *tensor : objectsIn(report, "tensors")) {
    std::vector<const json::Object *> dims = objectsIn(*tensor, "dims");
    // Norms and biases are whole in every framework.
    int64_t matrixDims = count_if(dims, [](const json::Object *dim) {
      return integerIn(*dim, "size") > 1;
    });
    // Routers are, too.
    bool isRouter = experts && matrixDims == 3 &&
                    integerIn(*dims.back(), "size") == numExperts;
    if (stringIn(*tensor, "kind") != "weight" || matrixDims < 3 || isRouter)
      continue;
    bool isSplit = any_of(dims, [&](const json::Object *dim) {
      return any_of(stringsIn(*dim, "axes"), [&](const std::string &axis) {
        return tensorAxes.contains(axis) || expertAxes.contains(axis);
      });
    });
    if (!isSplit)
      whole.push_back(stringIn(*tensor, "name").str());
  }
  if (!whole.empty())
    differ("tensor parallelism leaves " + join(whole, ", ") +
           " whole on its axes; the framework splits all weights of a layer");
}

/// Large weights that are whole under ZeRO-3, or split under less.
void FrameworkPlanReader::findOddShards() {
  if (plan.zero == Zero::None)
    return;
  constexpr double kLarge = 0.01;
  bool splits = plan.zero == Zero::Weights;
  double all = 0;
  std::vector<std::pair<double, StringRef>> odd;
  for (const json::Object *tensor : objectsIn(report, "tensors")) {
    if (stringIn(*tensor, "kind") != "weight")
      continue;
    double bytes = numberIn(*tensor, "global_bytes");
    all += bytes;
    bool isSplit = false, isOfExperts = false;
    for (const json::Object *dim : objectsIn(*tensor, "dims"))
      for (const std::string &axis : stringsIn(*dim, "axes")) {
        isSplit |= zeroAxes.contains(axis);
        isOfExperts |= expertAxes.contains(axis);
      }
    if (isSplit != splits && !isOfExperts)
      odd.push_back({bytes, stringIn(*tensor, "name")});
  }
  SmallVector<StringRef> large;
  for (auto [bytes, name] : odd)
    if (bytes >= kLarge * all)
      large.push_back(name);
  if (!large.empty())
    differ("the axes of the batch " +
           Twine(splits ? "leave " : "split the weights ") + join(large, ", ") +
           (splits ? " whole; ZeRO-3 splits all weights"
                   : ", too; ZeRO-1 and ZeRO-2 leave weights whole"));
}

void FrameworkPlanReader::readTraining() {
  const json::Object &training = *report.getObject("training");
  plan.microbatches = std::max<int64_t>(1, integerIn(training, "microbatches"));
  plan.offloads = stringIn(training, "offload") == "optimizer";
  if (stringIn(training, "offload") == "activations" ||
      training.get("offloaded"))
    plan.differences.push_back("'offload' of activations: what is saved for "
                               "the backward pass stays on the devices");
  if (stringIn(training, "update") == "fused")
    plan.differences.push_back("'update = fused': weights are updated at the "
                               "end of the step");
  readRemat();
  readStages();
  int64_t ranks = plan.dataRanks() * plan.microbatches;
  if (plan.batch % ranks == 0)
    plan.microbatchSize = plan.batch / ranks;
  else
    differ("a batch of " + Twine(plan.batch) +
           " sequences is not whole "
           "microbatches for " +
           Twine(plan.dataRanks()) + " data-parallel ranks of " +
           Twine(plan.microbatches) + " microbatches");
}

Expected<FrameworkPlan> FrameworkPlanReader::read() {
  if (!report.getObject("training"))
    return failedTo("--emit-config expects a training step: the program has no "
                    "'train' block");
  const json::Object *mesh = report.getObject("mesh");
  std::vector<const json::Object *> axes =
      mesh ? objectsIn(*mesh, "axes") : std::vector<const json::Object *>();
  for (const json::Object *axis : axes)
    if (!axis->getString("role"))
      return failedTo("--emit-config expects a report whose axes have a "
                      "'role'; make it again");
  plan.file = stringIn(report, "file").str();
  plan.words = stringIn(report, "words").str();
  if (Error error = readBatch())
    return error;
  readAxes();
  readExperts();
  readTraining();
  findOddWeights();
  findOddShards();
  return std::move(plan);
}

Expected<FrameworkPlan> shardc::readFrameworkPlan(const json::Object &report) {
  return FrameworkPlanReader(report).read();
}
