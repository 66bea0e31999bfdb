//===- RandomProgram.cpp - Random programs that can be rewritten ----------===//

#include "RandomProgram.h"
#include <algorithm>

using namespace shardc::test;

static constexpr unsigned kDims = 5;
static constexpr unsigned kMeshAxes = 2;

RandomProgram::RandomProgram(unsigned seed) : random(seed) {
  for (unsigned dim = 0; dim < kDims; ++dim)
    extents.push_back(int64_t(64) << pick(5));
  for (unsigned i = 0; i < 2; ++i)
    declare("input");
  for (unsigned i = 0; i < 3; ++i)
    declare("weight");
  unsigned statements = 3 + pick(6);
  for (unsigned i = 0; i < statements; ++i)
    addStatement();
}

std::vector<unsigned> RandomProgram::pickDims(unsigned count) {
  std::vector<unsigned> dims;
  while (dims.size() < count) {
    unsigned dim = pick(kDims);
    if (std::find(dims.begin(), dims.end(), dim) == dims.end())
      dims.push_back(dim);
  }
  return dims;
}

/// Puts mesh axes on random indices, each at most once.
void RandomProgram::place(Value &value) {
  value.isPlaced = true;
  for (unsigned axis = 0; axis < kMeshAxes; ++axis)
    if (!value.indices.empty() && chance(60))
      value.indices[pick(value.indices.size())].axes.push_back(axis);
}

void RandomProgram::declare(const char *kind) {
  Value value;
  value.kind = kind;
  for (unsigned dim : pickDims(2 + pick(2)))
    value.indices.push_back({dim, {}});
  if (chance(20))
    value.type = chance(50) ? "f32" : "int8";
  // Sums of int8 values alone would be integers; keep to floats in inputs.
  if (std::string(kind) == "input")
    value.type = "bf16";
  place(value);
  values.push_back(std::move(value));
}

std::vector<unsigned> RandomProgram::dimsOf(unsigned value) const {
  std::vector<unsigned> dims;
  for (const Index &index : values[value].indices)
    dims.push_back(index.dim);
  return dims;
}

/// Two values that share an index, which is summed; their other indices, up to
/// three, are the result's.
bool RandomProgram::addProduct(Value &value) {
  unsigned a = pick(values.size()), b = pick(values.size());
  std::vector<unsigned> first = dimsOf(a), second = dimsOf(b), shared, all;
  for (unsigned dim : first)
    if (std::find(second.begin(), second.end(), dim) != second.end())
      shared.push_back(dim);
  if (a == b || shared.empty())
    return false;
  unsigned summed = shared[pick(shared.size())];
  for (const auto &dims : {first, second})
    for (unsigned dim : dims)
      if (dim != summed && std::find(all.begin(), all.end(), dim) == all.end())
        all.push_back(dim);
  if (all.empty() || all.size() > 3)
    return false;
  value.operation = Value::Operation::Product;
  value.operands = {a, b};
  for (unsigned dim : all)
    value.indices.push_back({dim, {}});
  return true;
}

/// A value and another whose indices are some of its own.
bool RandomProgram::addSum(Value &value) {
  unsigned a = pick(values.size()), b = pick(values.size());
  std::vector<unsigned> first = dimsOf(a), second = dimsOf(b);
  auto isKnown = [&](unsigned dim) {
    return std::find(first.begin(), first.end(), dim) != first.end();
  };
  if (a == b || !std::all_of(second.begin(), second.end(), isKnown))
    return false;
  value.operation = Value::Operation::Sum;
  value.operands = {a, b};
  for (unsigned dim : first)
    value.indices.push_back({dim, {}});
  return true;
}

void RandomProgram::addStatement() {
  Value value;
  bool isProduct = chance(60), isSum = !isProduct && chance(40);
  if (isProduct ? !addProduct(value) : isSum && !addSum(value)) {
    value.operands.clear();
    value.indices.clear();
  }
  if (value.operands.empty()) {
    unsigned operand = pick(values.size());
    std::vector<unsigned> dims = dimsOf(operand);
    value.operands = {operand};
    value.along = dims[pick(dims.size())];
    unsigned what = pick(3);
    value.operation = what == 0   ? Value::Operation::Function
                      : what == 1 ? Value::Operation::Normalize
                                  : Value::Operation::Reduce;
    if (dims.size() == 1 && what == 2)
      value.operation = Value::Operation::Function;
    static constexpr const char *kFunctions[] = {"relu", "silu", "exp"};
    static constexpr const char *kReductions[] = {"sum", "max", "mean"};
    value.function = value.operation == Value::Operation::Reduce
                         ? kReductions[pick(3)]
                         : kFunctions[pick(3)];
    if (value.operation == Value::Operation::Normalize)
      value.function = chance(50) ? "softmax" : "rmsnorm";
    for (unsigned dim : dims)
      if (value.operation != Value::Operation::Reduce || dim != value.along)
        value.indices.push_back({dim, {}});
  }
  if (chance(70))
    place(value);
  for (unsigned operand : value.operands)
    values[operand].isUsed = true;
  values.push_back(std::move(value));
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// An order of the values in which each follows its operands.
std::vector<unsigned> RandomProgram::order(unsigned seed) const {
  std::mt19937 shuffle(seed);
  std::vector<unsigned> result;
  std::vector<bool> isDone(values.size(), false);
  while (result.size() < values.size()) {
    std::vector<unsigned> ready;
    for (unsigned value = 0; value < values.size(); ++value)
      if (const std::vector<unsigned> &operands = values[value].operands;
          !isDone[value] &&
          std::all_of(operands.begin(), operands.end(),
                      [&](unsigned other) { return isDone[other]; }))
        ready.push_back(value);
    unsigned next = ready[seed == 0 ? 0 : shuffle() % ready.size()];
    isDone[next] = true;
    result.push_back(next);
  }
  return result;
}

static std::string dimName(unsigned dim, const Writing &writing) {
  return writing.prefix + std::string(1, "ABCDE"[dim]);
}

static std::string axisName(unsigned axis, const Writing &writing) {
  return writing.prefix + std::string(1, "XY"[axis]);
}

static std::string valueName(unsigned value, const Writing &writing) {
  return writing.prefix + "v" + std::to_string(value);
}

/// `[A@X, B]`; everything closed, or open if it has no place.
std::string RandomProgram::list(const Value &value, const Writing &writing,
                                bool isPlaced) const {
  std::string text = "[";
  for (const Index &index : value.indices) {
    text += (text.size() > 1 ? ", " : "") + dimName(index.dim, writing);
    if (!isPlaced)
      continue;
    std::string axes;
    for (unsigned axis : index.axes)
      axes += (axes.empty() ? "" : ", ") + axisName(axis, writing);
    text += "@(" + axes + ")";
  }
  return text + "]";
}

std::string RandomProgram::statement(unsigned number,
                                     const Writing &writing) const {
  const Value &value = values[number];
  std::string name = valueName(number, writing);
  if (value.kind)
    return std::string(value.kind) + " " + name + ": " + value.type +
           list(value, writing, value.isPlaced);
  std::vector<std::string> operands;
  for (unsigned operand : value.operands)
    operands.push_back(valueName(operand, writing) +
                       list(values[operand], writing, false));
  std::string text =
      name + ": bf16" + list(value, writing, value.isPlaced) + " = ";
  switch (value.operation) {
  case Value::Operation::Product:
    return text + operands[0] + " * " + operands[1];
  case Value::Operation::Sum:
    return text + operands[0] + " + " + operands[1];
  case Value::Operation::Function:
    return text + value.function + "(" + operands[0] + ")";
  case Value::Operation::Reduce:
  case Value::Operation::Normalize:
    return text + value.function + "[" + dimName(value.along, writing) + "](" +
           operands[0] + ")";
  }
  return text;
}

std::string RandomProgram::text(const Writing &writing) const {
  std::string text = "hardware " + writing.hardware + "\nmesh [";
  for (auto [axis, size] : writing.mesh)
    text += (axis == writing.mesh.front().first ? "" : ", ") +
            axisName(axis, writing) + "=" + std::to_string(size);
  text += "]\n";
  for (unsigned dim = 0; dim < kDims; ++dim)
    text += "dim " + dimName(dim, writing) + " = " +
            std::to_string(extents[dim]) + "\n";
  for (unsigned value : order(writing.orderSeed))
    text += statement(value, writing) + "\n";
  for (unsigned value = 0; value < values.size(); ++value)
    if (!values[value].kind && !values[value].isUsed)
      text += "output " + valueName(value, writing) + "\n";
  return text;
}
