//===- Evaluated.cpp - Operations run as a whole and in parts -------------===//

#include "Evaluated.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static int64_t extentOf(const OpText &text, const Extents &extents,
                        const std::string &index) {
  auto merged = text.merged.find(index);
  if (merged == text.merged.end())
    return extents.at(index);
  int64_t product = 1;
  for (char part : merged->second)
    product *= extents.at(std::string(1, part));
  return product;
}

/// The extent in a program's parts of an index that each of them has whole.
static std::string wholeKey(const std::string &index) {
  return index + " whole";
}

static std::string typeText(const OpText &text, const TensorText &tensor,
                            const Extents &extents) {
  std::string type = "tensor<";
  for (char letter : tensor.indices) {
    std::string index(1, letter);
    bool isWhole = tensor.whole.find(letter) != std::string::npos &&
                   extents.count(wholeKey(index));
    int64_t extent =
        isWhole ? extents.at(wholeKey(index)) : extentOf(text, extents, index);
    type += std::to_string(extent) + "x";
  }
  return type + tensor.type + ">";
}

static std::string listText(const std::string &indices, const char *quote) {
  std::vector<std::string> names;
  for (char index : indices)
    names.push_back(quote + std::string(1, index) + quote);
  return "[" + llvm::join(names, ", ") + "]";
}

std::string OpText::program(const Extents &extents) const {
  std::string text;
  std::vector<std::string> lists, types;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    std::string name = std::to_string(i);
    types.push_back(typeText(*this, operand, extents));
    lists.push_back(listText(operand.indices, ""));
    text += "%" + name + " = shd.declare input \"" + name + "\" " +
            listText(operand.indices, "\"") + " : " + types.back() + "\n";
  }
  std::string inputs;
  for (auto [operand, type] : llvm::zip_equal(operands, types)) {
    std::string word = operand.word.empty() ? ", " : " " + operand.word + " ";
    inputs += (inputs.empty() ? "" : word) + type;
  }
  std::string result = typeText(*this, this->result, extents);
  std::string resultList = listText(this->result.indices, "");
  for (const TensorText &other : otherResults) {
    result += ", " + typeText(*this, other, extents);
    resultList += ", " + listText(other.indices, "");
  }
  if (!otherResults.empty() && !bareTypes)
    result = "(" + result + ")";
  text += "%result:" + std::to_string(1 + otherResults.size()) + " = " + head +
          " <" + llvm::join(lists, ", ");
  text += (lists.empty() ? "-> " : " -> ") + resultList;
  text += "> " + tail + " : ";
  if (operands.empty())
    return text + result;
  return text + (bareTypes ? inputs : "(" + inputs + ")") + " -> " + result;
}

Evaluated::Evaluated(const OpText &text, const Extents &extents)
    : program(text.program(extents)),
      handler(&program.context, [this](Diagnostic &diagnostic) {
        said += diagnostic.str();
        return success();
      }) {
  program.module->walk([&](EvaluationOpInterface op) { found = op; });
  theRule =
      cast<ShardingRuleOpInterface>(found.getOperation()).getShardingRule();
}

std::vector<FactorRange> Evaluated::wholeRanges() const {
  std::vector<FactorRange> ranges;
  for (const Factor &factor : theRule.factors)
    ranges.push_back({0, factor.extent, factor.extent});
  return ranges;
}

Tensor Evaluated::operand(unsigned number, const Values &values) {
  Tensor tensor(cast<RankedTensorType>(found->getOperand(number).getType()));
  EXPECT_EQ(tensor.getNumElements(), int64_t(values.size()));
  for (auto [i, value] : llvm::enumerate(values))
    tensor.setReal(int64_t(i), value);
  return tensor;
}

static std::vector<const Tensor *> pointersTo(ArrayRef<Tensor> tensors) {
  std::vector<const Tensor *> pointers;
  for (const Tensor &tensor : tensors)
    pointers.push_back(&tensor);
  return pointers;
}

FailureOr<TensorList> Evaluated::run(ArrayRef<Tensor> operands,
                                     ArrayRef<FactorRange> ranges,
                                     PositionPolicy policy) {
  return found.evaluate(pointersTo(operands), ranges, policy);
}

Values shd::valuesOf(const Tensor &tensor) {
  Values values;
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    values.push_back(tensor.getReal(i));
  return values;
}

static std::vector<Tensor> operandsOf(Evaluated &op,
                                      const std::vector<Values> &inputs) {
  std::vector<Tensor> operands;
  for (auto [i, values] : llvm::enumerate(inputs))
    operands.push_back(op.operand(i, values));
  return operands;
}

std::vector<Values> shd::evaluateAll(const OpText &text, const Extents &extents,
                                     const std::vector<Values> &inputs,
                                     PositionPolicy policy) {
  Evaluated op(text, extents);
  FailureOr<TensorList> results =
      op.run(operandsOf(op, inputs), op.wholeRanges(), policy);
  EXPECT_TRUE(succeeded(results)) << op.errors();
  std::vector<Values> values;
  if (succeeded(results))
    for (const Tensor &result : *results)
      values.push_back(valuesOf(result));
  return values;
}

Values shd::evaluate(const OpText &text, const Extents &extents,
                     const std::vector<Values> &inputs, PositionPolicy policy) {
  std::vector<Values> all = evaluateAll(text, extents, inputs, policy);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? Values() : all.front();
}

std::string shd::errorOf(const OpText &text, const Extents &extents,
                         const std::vector<Values> &inputs) {
  Evaluated op(text, extents);
  EXPECT_TRUE(failed(op.run(operandsOf(op, inputs), op.wholeRanges())));
  return op.errors();
}

Values shd::someValues(const TensorText &text, const Extents &extents,
                       unsigned seed) {
  int64_t count = 1;
  for (char index : text.indices)
    count *= extents.at(std::string(1, index));
  Values values;
  uint32_t state = seed * 2654435761u + 12345;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(double(state >> 16) / 16384 - 2);
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

namespace {
/// One device: its ranges, and its part of each factor.
struct Device {
  std::vector<FactorRange> ranges;
  std::vector<int64_t> part;
};
} // namespace

/// Calls `visit` with the offsets of every element that a device has, in its
/// array and in the whole one.
static void forEachElement(const TensorFactors &dims, const ShardingRule &whole,
                           const ShardingRule &local,
                           ArrayRef<FactorRange> ranges,
                           llvm::function_ref<void(int64_t, int64_t)> visit) {
  std::vector<unsigned> factors;
  for (const DimFactors &dim : dims)
    factors.insert(factors.end(), dim.begin(), dim.end());
  std::function<void(size_t, int64_t, int64_t)> walk = [&](size_t depth,
                                                           int64_t inPart,
                                                           int64_t inWhole) {
    if (depth == factors.size())
      return visit(inPart, inWhole);
    unsigned factor = factors[depth];
    for (int64_t i = 0; i < ranges[factor].size; ++i)
      walk(depth + 1, inPart * local.factors[factor].extent + i,
           inWhole * whole.factors[factor].extent + ranges[factor].offset + i);
  };
  walk(0, 0, 0);
}

static TensorFactors statisticDims(const Statistic &statistic) {
  TensorFactors dims;
  for (unsigned factor : statistic.factors)
    dims.push_back({factor});
  return dims;
}

namespace {
/// Runs the parts of one operation.
class Grid {
public:
  Grid(const OpText &text, const Extents &extents,
       const std::vector<Values> &inputs,
       const std::map<std::string, int64_t> &parts, PositionPolicy policy);

  void run();

private:
  Extents localExtents() const;
  void makeDevices();
  void makeOperands(const std::vector<Values> &inputs);
  void agreeOn(unsigned statistic);
  /// False for a device that has the same elements as another for a statistic
  /// and differs from it in other factors.
  bool contributes(const Device &device, const Statistic &statistic) const;
  /// True if the devices along a factor agree on a result.
  bool isAgreed(unsigned factor, unsigned result) const;
  void compareResult(unsigned number, const Tensor &expected,
                     ArrayRef<TensorList> results);

  std::map<std::string, int64_t> parts;
  Extents extents;
  PositionPolicy policy;
  Evaluated whole, local;
  std::vector<Device> devices;
  /// Per device: operands, then statistics.
  std::vector<std::vector<Tensor>> memory;
  std::vector<Tensor> wholeOperands;
};
} // namespace

Extents Grid::localExtents() const {
  Extents local = extents;
  for (auto [index, count] : parts) {
    local[wholeKey(index)] = extents.at(index);
    local[index] = (extents.at(index) + count - 1) / count;
  }
  return local;
}

Grid::Grid(const OpText &text, const Extents &extents,
           const std::vector<Values> &inputs,
           const std::map<std::string, int64_t> &parts, PositionPolicy policy)
    : parts(parts), extents(extents), policy(policy), whole(text, extents),
      local(text, localExtents()) {
  makeDevices();
  makeOperands(inputs);
}

void Grid::makeDevices() {
  devices.push_back({});
  for (auto [number, factor] : llvm::enumerate(whole.rule().factors)) {
    auto found = parts.find(factor.name);
    int64_t count = found == parts.end() ? 1 : found->second;
    int64_t held = local.rule().factors[number].extent;
    std::vector<Device> more;
    for (const Device &device : devices)
      for (int64_t part = 0; part < count; ++part) {
        Device &next = more.emplace_back(device);
        int64_t offset = std::min(part * held, factor.extent);
        next.ranges.push_back(
            {offset, std::min(held, factor.extent - offset), factor.extent});
        next.part.push_back(part);
      }
    devices = std::move(more);
  }
}

void Grid::makeOperands(const std::vector<Values> &inputs) {
  // In the padding: no position, and nothing that may enter a sum.
  constexpr double garbage = 1e9;
  wholeOperands = operandsOf(whole, inputs);
  for (const Device &device : devices) {
    std::vector<Tensor> &tensors = memory.emplace_back();
    for (auto [i, from] : llvm::enumerate(wholeOperands)) {
      Tensor to(cast<RankedTensorType>(local.op()->getOperand(i).getType()));
      for (int64_t at = 0; at < to.getNumElements(); ++at)
        to.setReal(at, to.isReal() ? std::nan("") : garbage);
      forEachElement(whole.rule().operands[i], whole.rule(), local.rule(),
                     device.ranges, [&](int64_t inPart, int64_t inWhole) {
                       to.setReal(inPart, from.getReal(inWhole));
                     });
      tensors.push_back(std::move(to));
    }
  }
}

static double combine(Statistic::Combination combination, double a, double b) {
  switch (combination) {
  case Statistic::Combination::Sum:
    return a + b;
  case Statistic::Combination::Max:
    return std::max(a, b);
  case Statistic::Combination::Min:
    return std::min(a, b);
  }
  llvm_unreachable("a new combination");
}

bool Grid::contributes(const Device &device, const Statistic &statistic) const {
  for (auto [number, factor] : llvm::enumerate(whole.rule().factors)) {
    bool isAgreed = factor.kind == FactorKind::Statistic ||
                    factor.kind == FactorKind::StatisticReduction;
    if (device.part[number] != 0 && !isAgreed &&
        !llvm::is_contained(statistic.factors, number))
      return false;
  }
  return true;
}

void Grid::agreeOn(unsigned number) {
  const Statistic &statistic = whole.rule().statistics[number];
  TensorFactors dims = statisticDims(statistic);
  int64_t count = 1;
  for (unsigned factor : statistic.factors)
    count *= whole.rule().factors[factor].extent;
  std::vector<std::optional<double>> agreed(count);
  std::vector<Tensor> contributions;
  for (auto [device, tensors] : llvm::zip_equal(devices, memory)) {
    FailureOr<Tensor> value =
        cast<StatisticsOpInterface>(*local.op())
            .evaluateStatistic(number, pointersTo(tensors), device.ranges,
                               policy);
    ASSERT_TRUE(succeeded(value)) << local.errors();
    EXPECT_EQ(value->getElementType(),
              typeFromName(value->getElementType().getContext(),
                           statistic.elementType));
    forEachElement(dims, whole.rule(), local.rule(), device.ranges,
                   [&](int64_t inPart, int64_t inWhole) {
                     if (!contributes(device, statistic))
                       return;
                     std::optional<double> &to = agreed[inWhole];
                     double part = value->getReal(inPart);
                     to = to ? combine(statistic.combination, *to, part) : part;
                   });
    contributions.push_back(std::move(*value));
  }
  for (auto [device, tensors, tensor] :
       llvm::zip_equal(devices, memory, contributions)) {
    for (int64_t at = 0; at < tensor.getNumElements(); ++at)
      tensor.setReal(at, tensor.isReal() ? std::nan("") : 0);
    forEachElement(dims, whole.rule(), local.rule(), device.ranges,
                   [&, &to = tensor](int64_t inPart, int64_t inWhole) {
                     to.setReal(inPart, *agreed[inWhole]);
                   });
    tensors.push_back(tensor);
  }
}

bool Grid::isAgreed(unsigned factor, unsigned result) const {
  return !hasFactor(whole.rule().results[result], factor) &&
         !leavesPartialSums(whole.rule(), factor, result);
}

void Grid::compareResult(unsigned number, const Tensor &expected,
                         ArrayRef<TensorList> results) {
  Values sum(expected.getNumElements(), 0);
  for (auto [device, list] : llvm::zip_equal(devices, results)) {
    const Tensor &result = list[number];
    EXPECT_EQ(result.getElementType(),
              getElementTypeOrSelf(local.op()->getResult(number)));
    // Devices that agree have the same result; it counts once.
    bool counts = true;
    for (unsigned factor = 0; factor < device.part.size(); ++factor)
      counts &= !isAgreed(factor, number) || device.part[factor] == 0;
    int64_t inRange = 0, nonZero = 0;
    forEachElement(whole.rule().results[number], whole.rule(), local.rule(),
                   device.ranges, [&](int64_t inPart, int64_t inWhole) {
                     double value = result.getReal(inPart);
                     inRange += value != 0;
                     if (counts)
                       sum[inWhole] += value;
                     else if (value != expected.getReal(inWhole))
                       EXPECT_NEAR(value, expected.getReal(inWhole), 1e-12);
                   });
    for (double value : valuesOf(result))
      nonZero += value != 0;
    EXPECT_EQ(nonZero, inRange) << "padding of a result must be 0";
  }
  expectNear(sum, valuesOf(expected));
}

void Grid::run() {
  bool agrees = llvm::any_of(whole.rule().factors, [&](const Factor &factor) {
    bool isStatistic = factor.kind == FactorKind::Statistic ||
                       factor.kind == FactorKind::StatisticReduction;
    return isStatistic && parts.count(factor.name) != 0;
  });
  if (agrees)
    for (unsigned i = 0; i < whole.rule().statistics.size(); ++i)
      agreeOn(i);
  FailureOr<TensorList> expected =
      whole.run(wholeOperands, whole.wholeRanges(), policy);
  ASSERT_TRUE(succeeded(expected)) << whole.errors();
  std::vector<TensorList> results;
  for (auto [device, tensors] : llvm::zip_equal(devices, memory)) {
    FailureOr<TensorList> parts = local.run(tensors, device.ranges, policy);
    ASSERT_TRUE(succeeded(parts)) << local.errors();
    results.push_back(std::move(*parts));
  }
  for (auto [number, whole] : llvm::enumerate(*expected))
    compareResult(number, whole, results);
}

void shd::expectPartsMakeWhole(const OpText &text, const Extents &extents,
                               const std::vector<Values> &inputs,
                               const std::map<std::string, int64_t> &parts,
                               PositionPolicy policy) {
  Grid(text, extents, inputs, parts, policy).run();
}
