//===- RandomProgram.cpp - Random programs over the whole language --------===//

#include "RandomProgram.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <memory>
#include <optional>
#include <random>

using namespace shardc::test;
using llvm::ArrayRef;

namespace {

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

/// In the order of their widths within a class.
enum class Type {
  F4,
  F8E4,
  F8E5,
  BF16,
  F16,
  TF32,
  F32,
  F64,
  Int4,
  Int8,
  UInt8,
  Int16,
  Int32,
  Bool
};

const char *nameOf(Type type) {
  static const char *const names[] = {
      "f4e2m1", "f8e4m3", "f8e5m2", "bf16",  "f16",   "tf32",  "f32",
      "f64",    "int4",   "int8",   "uint8", "int16", "int32", "bool"};
  return names[unsigned(type)];
}

bool isFloat(Type type) { return type <= Type::F64; }
bool isInteger(Type type) { return type >= Type::Int4 && type < Type::Bool; }
/// Enough digits for sums and products of any of the others.
bool isWideFloat(Type type) { return type >= Type::BF16 && type <= Type::F64; }

/// The type of a sum of both; two different f8 types do not meet.
Type commonType(Type a, Type b) {
  if (a > b)
    std::swap(a, b);
  if (a == b || b == Type::Bool)
    return a;
  if (isFloat(a) && !isFloat(b))
    return a;
  if (a == Type::BF16 && b == Type::F16)
    return Type::F32;
  if (b == Type::UInt8)
    return Type::Int16;
  return b;
}

//===----------------------------------------------------------------------===//
// The generator
//===----------------------------------------------------------------------===//

/// Numbers of dims.
using Dims = llvm::SmallVector<unsigned, 6>;

struct Dim {
  std::string name;
  int64_t extent = 1;
  std::string definition;
};

struct Axis {
  std::string name;
  int64_t size = 1;
};

/// Mesh axes, the major one first.
using Axes = std::vector<unsigned>;

/// The value of a name.
struct Value {
  std::string name;
  Type type = Type::BF16;
  Dims dims;
  /// The logarithm to base 10 of about how large its elements are.
  double magnitude = 0;
  /// Its elements do not depend on the order in which anything was summed.
  bool exact = true;
  bool isState = false;
  bool isAssigned = false;
  bool isUsed = false;
  /// Repeats around its first assignment or declaration.
  unsigned depth = 0;
  /// Axes along which it was left as partial sums.
  Axes partial;
};

struct Expression {
  std::string text;
  Type type = Type::BF16;
  double magnitude = 0;
  bool exact = true;
  /// Needs no parentheses anywhere.
  bool isAtom = true;
};

/// A layer that can be called.
struct Layer {
  struct Parameter {
    std::string name;
    Type type;
    Dims dims;
    bool isWindow = false;
  };
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<Value> results;
};

class Generator {
public:
  Generator(uint64_t seed, const RandomProgramOptions &options)
      : options(options), random(seed) {
    for (unsigned i = 0; i < 8; ++i)
      (void)random();
    // Not of the same numbers, so that the other programs stay as they are.
    trains = ((seed + 1) * 0x9e3779b97f4a7c15 >> 40) % 100 < options.trained;
    dispatches =
        ((seed + 1) * 0xd1342543de82ef95 >> 40) % 100 < options.experts;
  }

  RandomProgram run();

private:
  // Choices.
  unsigned below(size_t bound) { return random() % bound; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename List> const auto &pick(const List &list) {
    return list[below(list.size())];
  }
  template <typename List> void shuffle(List &list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[below(i)]);
  }
  void count(const std::string &feature) { ++result.features[feature]; }

  // Machine and indices.
  void makeMesh();
  void makeDims();
  int64_t randomExtent();
  unsigned addDim(int64_t extent, const std::string &definition = "");
  unsigned aliasOf(unsigned dim);
  int64_t volume(ArrayRef<unsigned> list) const;
  Dims pickDims(unsigned most, ArrayRef<unsigned> without = {});
  std::optional<unsigned> pickContracted(ArrayRef<unsigned> kept);
  Type pickFloat();
  Type pickInteger();

  // Placements.
  void beginStatement(ArrayRef<unsigned> kept = {});
  const Axes &placeOf(unsigned dim);
  std::string place(unsigned dim, const Axes &axes);
  std::string list(ArrayRef<unsigned> dims, const char *site,
                   bool mayAnnotate = true);
  std::string partialAxes(const Axes &axes);

  // Values.
  void line(const std::string &text);
  Value &declare(const char *kind, Type type, Dims dims, bool stacked = false);
  Value &leaf(Type type, ArrayRef<unsigned> dims);
  template <typename Predicate> Value *find(Predicate predicate);
  std::string reference(Value &value, bool mayAnnotate = true);
  std::string stacked(Type type, ArrayRef<unsigned> dims);

  // Expressions: their free indices are some of `dims`.
  Expression read(Value &value);
  Expression cast(Type type, const Expression &expression);
  Expression bounded(Expression expression, double magnitude = 0.3);
  std::string inParentheses(const Expression &expression);
  Expression call(const std::string &function, const Expression &argument);
  Expression number();
  Expression floatLeaf(ArrayRef<unsigned> dims);
  Expression floats(ArrayRef<unsigned> dims, unsigned depth);
  Expression unary(ArrayRef<unsigned> dims, unsigned depth);
  Expression binary(ArrayRef<unsigned> dims, unsigned depth);
  Expression product(ArrayRef<unsigned> dims, unsigned depth);
  Expression reduction(ArrayRef<unsigned> dims, unsigned depth);
  Expression normalization(ArrayRef<unsigned> dims, unsigned depth);
  Expression gather(ArrayRef<unsigned> dims);
  Expression exactFloats(ArrayRef<unsigned> dims);
  Expression integers(ArrayRef<unsigned> dims, unsigned depth);
  Expression booleans(ArrayRef<unsigned> dims, unsigned depth);
  Expression positions(ArrayRef<unsigned> dims);
  Expression anything(ArrayRef<unsigned> dims);

  // Statements.
  Value &assign(Dims dims, const Expression &right,
                std::optional<unsigned> summed = std::nullopt);
  Dims headIndices(unsigned along);
  std::string fresh() { return "v" + std::to_string(values++); }
  void statement();
  void simpleStatement();
  void expressionStatement();
  void productStatement();
  void reshardStatement();
  void rebindStatement();
  bool chooseLongIndex();
  void attentionBlock();
  void expertsBlock();
  void ropeStatement();
  void lossStatement();
  void splitStatement();
  void mergeStatement();
  void sliceStatement();
  void concatStatement();
  void stateStatement();
  void cacheStatement();
  void scatterStatement();
  void callStatement();
  void repeat();
  void update(Value &value);
  void finish(Value &value, const Expression &right);
  void makeLayer();
  void outputs();
  std::string chunkedLoss();
  void trainBlock();
  std::string randomOptimizer();

  const RandomProgramOptions &options;
  std::mt19937_64 random;
  RandomProgram result;

  std::vector<Axis> axes;
  std::vector<Dim> dims;
  Dims base; // dims for any use
  std::string hardware, head, layerText, body;
  std::string *out = &body;
  unsigned indent = 0, values = 0, depth = 0;
  bool inLayer = false;
  /// The index that long attention runs along.
  std::optional<unsigned> longIndex;
  std::optional<unsigned> window;
  /// The program is trained, so that it updates no state.
  bool trains = false;
  /// It ends with experts.
  bool dispatches = false;
  /// Names and indices of weights of real numbers that no repeat stacks.
  std::vector<std::pair<std::string, Dims>> weights;
  /// The indices of inputs, and those of weights, which cannot be the batch.
  Dims inputDims, weightDims;
  /// Along which tokens of a group run: they belong together.
  Dims tokenDims;
  /// The index of the repeat around; the first of them is the outermost.
  Dims repeats;
  /// Iterations of the longest repeat that is in no other one and in no layer.
  unsigned longestRepeat = 0;
  std::vector<std::unique_ptr<Value>> visible;
  std::vector<Layer> layers;
  std::vector<std::string> outputNames;

  // Placements of one statement.
  std::map<unsigned, Axes> placement;
  Axes freeAxes;
  Dims used; // indices that it has taken
};

//===----------------------------------------------------------------------===//
// Machine and indices
//===----------------------------------------------------------------------===//

void Generator::makeMesh() {
  std::vector<int64_t> sizes = options.mesh;
  if (sizes.empty()) {
    static const int64_t choices[] = {1, 2, 2, 2, 3, 4, 4, 6};
    int64_t most = chance(90) ? 16 : 48, devices = 1;
    // The search takes long on many axes.
    static const unsigned ranks[] = {1, 1, 1, 2, 2, 2, 2, 3, 3, 4};
    unsigned rank = ranks[below(10)];
    while (sizes.size() < rank) {
      int64_t size = choices[below(8)];
      if (devices * size > most)
        size = 1 + below(2);
      if (devices * size > most)
        size = 1;
      devices *= size;
      sizes.push_back(size);
    }
  }
  for (auto [number, size] : llvm::enumerate(sizes))
    axes.push_back({std::string(1, "XYZW"[number]), size});
  count("mesh of " + std::to_string(axes.size()));
  hardware = options.hardware;
  if (!hardware.empty())
    return;
  int64_t devices = 1;
  for (int64_t size : sizes)
    devices *= size;
  if (chance(25)) {
    hardware = devices <= 8 ? "h100[" + std::to_string(devices) + "]"
                            : "gb200_nvl72[" + std::to_string(devices) + "]";
    return;
  }
  // Each physical axis holds a run of mesh axes.
  static const char *const machines[] = {"tpu_v5e", "tpu_v6e", "tpu_v5p"};
  unsigned machine = below(3), rank = machine == 2 ? 3 : 2;
  std::vector<int64_t> shape(rank, 1);
  for (auto [number, size] : llvm::enumerate(sizes))
    shape[number * rank / std::max<size_t>(sizes.size(), rank)] *= size;
  for (int64_t extent : shape)
    if (extent > 16) {
      hardware = "gb200_nvl72[" + std::to_string(devices) + "]";
      return;
    }
  std::vector<std::string> texts;
  for (int64_t extent : shape)
    texts.push_back(std::to_string(extent));
  hardware =
      std::string(machines[machine]) + "[" + llvm::join(texts, ", ") + "]";
}

int64_t Generator::randomExtent() {
  if (result.allowPadding && chance(50))
    return options.extentUnit * (1 + below(9));
  int64_t extent = 1;
  for (const Axis &axis : axes)
    if (extent * axis.size <= 12 && chance(60))
      extent *= axis.size;
  if (extent <= 12)
    extent *= 1 + below(3);
  return options.extentUnit * std::max<int64_t>(extent, chance(85) ? 2 : 1);
}

unsigned Generator::addDim(int64_t extent, const std::string &definition) {
  static const char names[] = "BTDFEKGVMNPQRIJACHU";
  std::string name(1, names[dims.size() % (sizeof(names) - 1)]);
  if (size_t round = dims.size() / (sizeof(names) - 1))
    name += std::to_string(round);
  dims.push_back(
      {name, extent, definition.empty() ? std::to_string(extent) : definition});
  return dims.size() - 1;
}

void Generator::makeDims() {
  for (unsigned i = 0, n = options.simple ? 3 + below(2) : 4 + below(3); i < n;
       ++i)
    base.push_back(addDim(randomExtent()));
}

/// Another index of the same extent.
unsigned Generator::aliasOf(unsigned dim) {
  count("dim S = T");
  return addDim(dims[dim].extent, dims[dim].name);
}

int64_t Generator::volume(ArrayRef<unsigned> list) const {
  int64_t product = 1;
  for (unsigned dim : list)
    product *= dims[dim].extent;
  return product;
}

/// Up to `most` indices of a tensor that is not too large.
Dims Generator::pickDims(unsigned most, ArrayRef<unsigned> without) {
  Dims candidates = base, chosen;
  shuffle(candidates);
  unsigned rank = 1 + below(most);
  if (chance(4))
    rank = 0;
  for (unsigned dim : candidates) {
    if (chosen.size() >= rank || llvm::is_contained(without, dim))
      continue;
    chosen.push_back(dim);
    if (volume(chosen) * volume(without) > options.maxElements)
      chosen.pop_back();
  }
  return chosen;
}

/// An index to sum over or to normalise along.
std::optional<unsigned> Generator::pickContracted(ArrayRef<unsigned> kept) {
  Dims candidates;
  for (unsigned dim : base)
    if (!llvm::is_contained(kept, dim) && !llvm::is_contained(used, dim) &&
        volume(kept) * dims[dim].extent <= options.maxWork)
      candidates.push_back(dim);
  if (candidates.empty())
    return std::nullopt;
  unsigned dim = pick(candidates);
  used.push_back(dim);
  return dim;
}

Type Generator::pickFloat() {
  if (options.simple)
    return Type::BF16;
  static const Type types[] = {Type::BF16, Type::BF16, Type::BF16, Type::F32,
                               Type::F32,  Type::F16,  Type::F64,  Type::TF32};
  return types[below(8)];
}

Type Generator::pickInteger() {
  static const Type types[] = {Type::Int32, Type::Int32, Type::Int8,
                               Type::UInt8, Type::Int16, Type::Int4};
  return types[below(6)];
}

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

/// All annotated references of a statement place an index alike; `kept` are on
/// no axis.
void Generator::beginStatement(ArrayRef<unsigned> kept) {
  placement.clear();
  used.assign(repeats.begin(), repeats.end());
  freeAxes.clear();
  for (unsigned axis = 0; axis < axes.size(); ++axis)
    freeAxes.push_back(axis);
  shuffle(freeAxes);
  for (unsigned dim : kept)
    placement[dim] = {};
}

const Axes &Generator::placeOf(unsigned dim) {
  auto [it, isNew] = placement.try_emplace(dim);
  if (!isNew)
    return it->second;
  unsigned most = chance(45) ? 0 : chance(80) ? 1 : 2;
  int64_t parts = 1;
  for (unsigned i = 0; i < freeAxes.size() && it->second.size() < most;) {
    int64_t size = axes[freeAxes[i]].size;
    bool divides = dims[dim].extent % (parts * size) == 0;
    bool pads = result.allowPadding && parts * size <= dims[dim].extent;
    if (!divides && !pads) {
      ++i;
      continue;
    }
    parts *= size;
    it->second.push_back(freeAxes[i]);
    freeAxes.erase(freeAxes.begin() + i);
  }
  return it->second;
}

std::string Generator::place(unsigned dim, const Axes &where) {
  if (where.empty())
    return dims[dim].name;
  if (where.size() == 1) {
    count("@X");
    return dims[dim].name + "@" + axes[where[0]].name;
  }
  std::vector<std::string> names;
  for (unsigned axis : where)
    names.push_back(axes[axis].name);
  count("@(X, Y)");
  return dims[dim].name + "@(" + llvm::join(names, ", ") + ")";
}

/// `[I, J]`, or with the statement's placement.
std::string Generator::list(ArrayRef<unsigned> indices, const char *site,
                            bool mayAnnotate) {
  bool annotates = mayAnnotate && !indices.empty() && chance(options.annotated);
  bool whole = annotates && chance(12), open = annotates && chance(35);
  if (whole)
    for (unsigned dim : indices)
      placement.try_emplace(dim);
  bool any = false;
  std::vector<std::string> names;
  for (unsigned dim : indices) {
    names.push_back(dims[dim].name);
    if (!annotates)
      continue;
    if (open && chance(50)) {
      names.back() += "@?";
      any = true;
      count("@?");
    } else {
      const Axes &where = placeOf(dim);
      names.back() = place(dim, where);
      if (where.empty() && whole) {
        names.back() += "@()";
        count("@()");
      }
      any |= whole || !where.empty();
    }
  }
  if (annotates && !any) {
    names.front() += "@()";
    count("@()");
  }
  if (annotates)
    count(std::string("annotated ") + site);
  return "[" + llvm::join(names, ", ") + "]";
}

std::string Generator::partialAxes(const Axes &where) {
  std::vector<std::string> names;
  for (unsigned axis : where)
    names.push_back("+" + axes[axis].name);
  count("{+X}");
  return "{" + llvm::join(names, ", ") + "}";
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void Generator::line(const std::string &text) {
  *out += std::string(2 * indent, ' ') + text + "\n";
}

/// A new input, weight or state, in the innermost scope that may have it.
Value &Generator::declare(const char *kind, Type type, Dims indices,
                          bool stacked) {
  auto value = std::make_unique<Value>();
  value->name = fresh();
  value->type = type;
  value->dims = indices;
  value->isState = llvm::StringRef(kind) == "state";
  bool isOutside = stacked || llvm::StringRef(kind) == "input";
  if (llvm::StringRef(kind) == "input")
    inputDims.append(indices.begin(), indices.end());
  else
    weightDims.append(indices.begin(), indices.end());
  if (llvm::StringRef(kind) == "weight" && isFloat(type) && !inLayer &&
      depth == 0)
    weights.push_back({value->name, indices});
  value->depth = isOutside ? 0 : depth;
  // Its own placement: not that of the statement that needs it.
  std::map<unsigned, Axes> saved = std::move(placement);
  Axes savedAxes = freeAxes;
  Dims savedUsed = used;
  beginStatement();
  std::string text = std::string(kind) + " " + value->name + ": " +
                     nameOf(type) + list(indices, "declaration");
  placement = std::move(saved);
  freeAxes = std::move(savedAxes);
  used = std::move(savedUsed);
  count(kind);
  count(nameOf(type));
  if (isOutside || (!inLayer && !depth))
    head += text + "\n";
  else
    line(text);
  visible.push_back(std::move(value));
  return *visible.back();
}

template <typename Predicate> Value *Generator::find(Predicate predicate) {
  std::vector<Value *> found;
  for (const auto &value : visible)
    if (predicate(*value))
      found.push_back(value.get());
  // Recent values are used most.
  if (found.empty())
    return nullptr;
  size_t first = chance(50) && found.size() > 3 ? found.size() - 3 : 0;
  return found[first + below(found.size() - first)];
}

/// A tensor with these indices.
Value &Generator::leaf(Type type, ArrayRef<unsigned> indices) {
  if (chance(60))
    if (Value *value = find([&](const Value &value) {
          return value.type == type && ArrayRef(value.dims) == indices;
        }))
      return *value;
  bool isInput = !inLayer && (depth == 0 || chance(30)) && chance(55);
  Dims order(indices.begin(), indices.end());
  return declare(isInput ? "input" : "weight", type, order);
}

/// A reference to this iteration's part of a tensor declared outside.
std::string Generator::stacked(Type type, ArrayRef<unsigned> indices) {
  Dims all{repeats.back()};
  all.append(indices.begin(), indices.end());
  Value &value = declare(chance(50) ? "weight" : "input", type, all, true);
  count("stacked tensor");
  value.isUsed = true;
  return value.name + list(all, "use", false);
}

std::string Generator::reference(Value &value, bool mayAnnotate) {
  value.isUsed = true;
  if (!value.dims.empty() && chance(5)) {
    count("bare name");
    return value.name;
  }
  return value.name + list(value.dims, "use", mayAnnotate);
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

Expression Generator::read(Value &value) {
  return {reference(value), value.type, value.magnitude, value.exact};
}

std::string Generator::inParentheses(const Expression &expression) {
  return expression.isAtom ? expression.text : "(" + expression.text + ")";
}

Expression Generator::call(const std::string &function,
                           const Expression &argument) {
  count(function.substr(0, function.find('[')));
  Expression made = argument;
  made.text = function + "(" + argument.text + ")";
  made.isAtom = true;
  return made;
}

Expression Generator::cast(Type type, const Expression &expression) {
  count("cast");
  count(nameOf(type));
  Expression made = expression;
  made.text = std::string(nameOf(type)) + "(" + expression.text + ")";
  made.type = type;
  made.isAtom = true;
  return made;
}

/// With elements of about 10 to the `magnitude` at most.
Expression Generator::bounded(Expression expression, double magnitude) {
  if (expression.magnitude <= magnitude)
    return expression;
  Expression made = call(chance(50) ? "tanh" : "sigmoid", expression);
  made.magnitude = 0;
  return made;
}

Expression Generator::number() {
  static const char *const numbers[] = {"0.5", "1.0", "0.25", "1.5", "2", "3"};
  Expression made;
  made.type = Type::BF16;
  made.magnitude = 0.4;
  if (!repeats.empty() || inLayer || base.empty() || chance(70)) {
    made.text = numbers[below(6)];
    count("literal");
    return made;
  }
  made.text = "size[" + dims[pick(base)].name + "]";
  made.magnitude = 1;
  count("size");
  return made;
}

/// A tensor of floats with exactly these indices, of a type that adds.
Expression Generator::floatLeaf(ArrayRef<unsigned> indices) {
  if (!repeats.empty() && !inLayer && chance(12)) {
    Expression made;
    made.type = pickFloat();
    made.text = stacked(made.type, indices);
    return made;
  }
  if (!options.simple && chance(12)) {
    static const Type narrow[] = {Type::F8E4, Type::F8E5, Type::F4,
                                  Type::Int8, Type::Bool, Type::Int4};
    Value &value = leaf(narrow[below(6)], indices);
    return cast(pickFloat(), read(value));
  }
  if (options.simple && chance(15))
    return cast(Type::BF16, read(leaf(Type::Int8, indices)));
  if (chance(50))
    if (Value *value = find([&](const Value &value) {
          return isWideFloat(value.type) && ArrayRef(value.dims) == indices;
        }))
      return read(*value);
  return read(leaf(pickFloat(), indices));
}

Expression Generator::floats(ArrayRef<unsigned> indices, unsigned level) {
  if (level == 0) {
    // Some of the indices: the rest is broadcast.
    Dims some(indices.begin(), indices.end());
    if (some.size() > 1 && chance(20))
      some.erase(some.begin() + below(some.size()));
    return floatLeaf(some);
  }
  unsigned kind = below(100);
  if (kind < 25)
    return unary(indices, level - 1);
  if (kind < 50)
    return binary(indices, level - 1);
  if (kind < 68)
    return product(indices, level - 1);
  if (kind < 78)
    return reduction(indices, level - 1);
  if (kind < 88)
    return normalization(indices, level - 1);
  if (kind < 92 && !options.simple)
    return gather(indices);
  if (kind < 94 && !options.simple)
    return cast(pickFloat(), integers(indices, 1));
  if (kind < 96 && !options.simple)
    return cast(pickFloat(), floats(indices, level - 1));
  return floatLeaf(indices);
}

Expression Generator::unary(ArrayRef<unsigned> indices, unsigned level) {
  Expression argument = floats(indices, level);
  if (chance(12)) {
    count("unary minus");
    Expression made = argument;
    made.text = "-" + inParentheses(argument);
    made.isAtom = false;
    return made;
  }
  static const char *const functions[] = {
      "relu", "gelu", "silu",  "sigmoid", "tanh", "exp",          "log",
      "sqrt", "abs",  "rsqrt", "square",  "neg",  "stop_gradient"};
  std::string function = functions[below(13)];
  if (function == "exp") {
    Expression made = call(function, bounded(argument));
    made.magnitude = 1;
    return made;
  }
  if (function == "log" || function == "sqrt" || function == "rsqrt") {
    Expression inner = call("square", bounded(argument, 1));
    inner.text += " + 1.0";
    inner.isAtom = false;
    Expression made = call(function, inner);
    made.magnitude = std::max(0.0, argument.magnitude);
    return made;
  }
  if (function == "square")
    argument = bounded(argument, 1);
  Expression made = call(function, argument);
  if (function == "square")
    made.magnitude *= 2;
  if (function == "sigmoid" || function == "tanh")
    made.magnitude = 0;
  return made;
}

Expression Generator::binary(ArrayRef<unsigned> indices, unsigned level) {
  Expression a = floats(indices, level),
             b = chance(15) ? number()
                            : floats(indices, chance(50) ? 0 : level);
  Expression made;
  made.type = commonType(a.type, b.type);
  made.magnitude = std::max(a.magnitude, b.magnitude) + 0.3;
  made.exact = a.exact && b.exact;
  unsigned kind = below(options.simple ? 8 : 14);
  if (kind < 5) {
    bool isSum = chance(65);
    made.text =
        a.text + (isSum ? " + " : " - ") + (isSum ? b.text : inParentheses(b));
    made.isAtom = false;
    count(isSum ? "+" : "-");
  } else if (kind < 8) {
    a = bounded(a, 1);
    b = bounded(b, 1);
    made.text = inParentheses(a) + " * " + inParentheses(b);
    made.magnitude = a.magnitude + b.magnitude;
    made.isAtom = false;
    count("*");
  } else if (kind < 10) {
    made.text =
        inParentheses(a) + " / (square(" + bounded(b, 1).text + ") + 1.0)";
    made.magnitude = a.magnitude;
    made.isAtom = false;
    count("/");
  } else if (kind < 12) {
    bool isMaximum = chance(50);
    made.text = std::string(isMaximum ? "maximum(" : "minimum(") + a.text +
                ", " + b.text + ")";
    count(isMaximum ? "maximum" : "minimum");
  } else {
    Expression condition = booleans(indices, 1);
    made.text = "where(" + condition.text + ", " + a.text + ", " + b.text + ")";
    made.exact &= condition.exact;
    count("where");
  }
  return made;
}

/// Two factors, or three, that share an index which is summed.
Expression Generator::product(ArrayRef<unsigned> indices, unsigned level) {
  std::optional<unsigned> summed = pickContracted(indices);
  if (!summed)
    return binary(indices, level);
  Dims left, right;
  for (unsigned dim : indices) {
    unsigned side = below(5);
    if (side != 1)
      left.push_back(dim);
    if (side == 0 || side == 1 || side == 4)
      right.push_back(dim);
  }
  left.insert(left.begin() + below(left.size() + 1), *summed);
  right.insert(right.begin() + below(right.size() + 1), *summed);
  Expression a = chance(75) ? floatLeaf(left)
                            : bounded(call("silu", floatLeaf(left))),
             b = floatLeaf(right);
  a = bounded(a, 1);
  b = bounded(b, 1);
  Expression made;
  made.text = a.text + " * " + b.text;
  made.type = commonType(a.type, b.type);
  double terms = std::log10(double(dims[*summed].extent));
  made.magnitude = a.magnitude + b.magnitude + terms;
  count("contraction");
  if (chance(15))
    if (std::optional<unsigned> second = pickContracted(left)) {
      // The last factor takes the first's index away.
      Dims other{*second};
      other.append(left.begin(), left.end());
      if (volume(other) <= options.maxElements) {
        Expression c = bounded(floatLeaf(other), 1);
        Expression d = floatLeaf({*second});
        made.text = chance(50) ? "(" + made.text + ") * " + c.text
                               : made.text + " * " + c.text;
        made.text += " * " + d.text;
        made.type = commonType(commonType(made.type, c.type), d.type);
        made.magnitude += c.magnitude + d.magnitude + 1;
        count("chain of products");
      }
    }
  made.exact = false;
  made.isAtom = false;
  return made;
}

Expression Generator::reduction(ArrayRef<unsigned> indices, unsigned level) {
  std::optional<unsigned> along = pickContracted(indices);
  if (!along)
    return unary(indices, level);
  static const char *const functions[] = {"sum", "max", "min", "mean"};
  unsigned function = below(4);
  Dims inner(indices.begin(), indices.end());
  inner.push_back(*along);
  std::string bracket = dims[*along].name;
  if (chance(15))
    if (std::optional<unsigned> second = pickContracted(inner)) {
      inner.push_back(*second);
      bracket += ", " + dims[*second].name;
    }
  Expression argument = bounded(floatLeaf(inner), 1);
  if (level && chance(40))
    argument = call(chance(50) ? "abs" : "relu", argument);
  Expression made =
      call(std::string(functions[function]) + "[" + bracket + "]", argument);
  if (function == 0)
    made.magnitude += 1;
  made.exact &= function == 1 || function == 2;
  return made;
}

Expression Generator::normalization(ArrayRef<unsigned> indices,
                                    unsigned level) {
  static const char *const functions[] = {"softmax", "rmsnorm", "layernorm",
                                          "logsumexp"};
  unsigned function = below(4);
  Expression made;
  if (function == 3) {
    std::optional<unsigned> along = pickContracted(indices);
    if (!along)
      return unary(indices, level);
    Dims inner(indices.begin(), indices.end());
    inner.push_back(*along);
    made = call("logsumexp[" + dims[*along].name + "]",
                bounded(floatLeaf(inner), 1));
    made.exact = false;
    return made;
  }
  if (indices.empty())
    return unary(indices, level);
  unsigned along = indices[below(indices.size())];
  Expression argument = floatLeaf(indices);
  std::string name = functions[function];
  count(name);
  made = argument;
  made.text = name + "[" + dims[along].name + "](" + bounded(argument, 2).text;
  if (function != 0) {
    if (chance(60)) {
      made.text += ", " + reference(leaf(argument.type, {along}));
      if (function == 2 && chance(60))
        made.text += ", " + reference(leaf(argument.type, {along}));
    }
    if (chance(25))
      made.text += ", eps=1e-5";
  }
  made.text += ")";
  made.magnitude = 0.5;
  made.exact = false;
  made.isAtom = true;
  return made;
}

/// An integer tensor with these indices to stand in the place of an index.
Expression Generator::positions(ArrayRef<unsigned> indices) {
  Value *value = nullptr;
  if (chance(40))
    value = find([&](const Value &value) {
      return isInteger(value.type) && ArrayRef(value.dims) == indices;
    });
  if (!value)
    value = &leaf(chance(80) ? Type::Int32 : pickInteger(), indices);
  value->isUsed = true;
  return {value->name + list(value->dims, "use"), value->type};
}

/// `table[tokens[B, T], D]`; an index of the positions may be the table's too.
Expression Generator::gather(ArrayRef<unsigned> indices) {
  std::optional<unsigned> rows = pickContracted(indices);
  if (!rows)
    return floatLeaf(indices);
  Dims outer, inner;
  for (unsigned dim : indices) {
    unsigned side = below(7);
    if (side < 3 || side == 6)
      outer.push_back(dim);
    if (side >= 3)
      inner.push_back(dim);
  }
  Dims table = outer;
  size_t place = below(table.size() + 1);
  table.insert(table.begin() + place, *rows);
  Value *value = nullptr;
  if (chance(40))
    value = find([&](const Value &value) {
      return isWideFloat(value.type) && ArrayRef(value.dims) == ArrayRef(table);
    });
  if (!value)
    value = &leaf(pickFloat(), table);
  value->isUsed = true;
  std::vector<std::string> parts;
  for (unsigned dim : table)
    parts.push_back(dims[dim].name);
  bool constant = inner.empty() && chance(60);
  if (constant) {
    parts[place] = std::to_string(below(dims[*rows].extent));
    count("constant position");
    if (chance(30))
      parts[place] = "size[" + dims[*rows].name + "] - 1";
  } else {
    parts[place] = positions(inner).text;
    count("gather");
    if (chance(12)) {
      const Axes &where = placeOf(*rows);
      if (where.size() == 1) {
        parts[place] += "@" + axes[where[0]].name;
        count("annotated gathered dimension");
      }
    }
  }
  Expression made;
  made.text = value->name + "[" + llvm::join(parts, ", ") + "]";
  made.type = value->type;
  made.magnitude = value->magnitude;
  made.exact = value->exact;
  return made;
}

/// Floats that no order of summation changes.
Expression Generator::exactFloats(ArrayRef<unsigned> indices) {
  if (chance(40))
    if (Value *value = find([&](const Value &value) {
          return isFloat(value.type) && value.exact &&
                 ArrayRef(value.dims) == indices;
        }))
      return read(*value);
  return read(declare(inLayer || chance(50) ? "weight" : "input", pickFloat(),
                      Dims(indices.begin(), indices.end())));
}

Expression Generator::integers(ArrayRef<unsigned> indices, unsigned level) {
  unsigned kind = level == 0 ? 0 : below(10);
  if (kind <= 2)
    return positions(indices);
  if (kind == 3 && indices.size() == 1) {
    count("iota");
    return {"iota[" + dims[indices[0]].name + "]", Type::Int32};
  }
  if (kind <= 5) {
    Expression a = integers(indices, level - 1), b = integers(indices, 0);
    static const char *const operators[] = {" + ", " - ", " * "};
    unsigned which = below(3);
    count("integer arithmetic");
    Expression made;
    made.text = inParentheses(a) + operators[which] + inParentheses(b);
    made.type = commonType(a.type, b.type);
    made.isAtom = false;
    return made;
  }
  if (kind == 6) {
    count("maximum");
    return {"maximum(" + integers(indices, level - 1).text + ", 1)",
            Type::Int32};
  }
  if (kind == 7) {
    static const Type types[] = {Type::Int8, Type::Int32, Type::UInt8};
    return cast(types[below(3)], exactFloats(indices));
  }
  std::optional<unsigned> along = pickContracted(indices);
  if (!along)
    return positions(indices);
  Dims inner(indices.begin(), indices.end());
  inner.push_back(*along);
  std::string bracket = "[" + dims[*along].name + "]";
  if (kind == 8) {
    Expression made = call("argmax" + bracket, exactFloats(inner));
    made.type = Type::Int32;
    made.magnitude = 0;
    return made;
  }
  static const char *const functions[] = {"sum", "max", "min"};
  unsigned function = below(3);
  count("integer reduction");
  return call(functions[function] + bracket, positions(inner));
}

Expression Generator::booleans(ArrayRef<unsigned> indices, unsigned level) {
  if (level == 0 || chance(15))
    return read(leaf(Type::Bool, indices));
  Expression made;
  made.type = Type::Bool;
  if (chance(20)) {
    Expression a = booleans(indices, 0), b = booleans(indices, level - 1);
    bool isAnd = chance(50);
    made.text = isAnd ? inParentheses(a) + " * " + inParentheses(b)
                      : "maximum(" + a.text + ", " + b.text + ")";
    made.isAtom = !isAnd;
    count(isAnd ? "and" : "or");
    return made;
  }
  static const char *const operators[] = {" == ", " != ", " < ",
                                          " <= ", " > ",  " >= "};
  std::string compared = operators[below(6)];
  count("comparison");
  if (chance(50)) {
    made.text = exactFloats(indices).text + compared;
    made.text += chance(50) ? "0.5" : exactFloats(indices).text;
  } else {
    made.text = integers(indices, 0).text + compared;
    made.text += chance(40) ? "1" : inParentheses(integers(indices, 1));
  }
  made.isAtom = false;
  return made;
}

Expression Generator::anything(ArrayRef<unsigned> indices) {
  unsigned kind = options.simple ? 99 : below(100);
  if (kind < 10)
    return integers(indices, 2);
  if (kind < 15)
    return booleans(indices, 2);
  return floats(indices, 1 + below(3));
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// A new name for an expression; it may stay a partial sum over `summed`.
Value &Generator::assign(Dims indices, const Expression &right,
                         std::optional<unsigned> summed) {
  shuffle(indices);
  auto value = std::make_unique<Value>();
  value->name = fresh();
  value->type = right.type;
  value->dims = indices;
  value->magnitude = right.magnitude;
  value->exact = right.exact;
  value->isAssigned = true;
  value->depth = depth;
  std::string left = value->name;
  if (isWideFloat(right.type) && chance(30)) {
    value->type = pickFloat();
    left += std::string(": ") + nameOf(value->type);
    count("typed left side");
  }
  left += list(indices, "left side");
  if (summed && !placeOf(*summed).empty() && chance(40)) {
    value->partial = placeOf(*summed);
    left += partialAxes(value->partial);
  }
  line(left + " = " + right.text);
  visible.push_back(std::move(value));
  return *visible.back();
}

void Generator::expressionStatement() {
  Dims indices = pickDims(4);
  beginStatement();
  used.append(indices.begin(), indices.end());
  count("assignment");
  assign(indices, anything(indices));
}

/// A product alone, whose sum may stay partial, perhaps with a function after.
void Generator::productStatement() {
  Dims indices = pickDims(3);
  beginStatement();
  used.append(indices.begin(), indices.end());
  size_t before = used.size();
  Expression right = product(indices, 0);
  std::optional<unsigned> summed;
  if (used.size() == before + 1 && right.text.find(" * ") != std::string::npos)
    summed = used[before];
  if (chance(20)) {
    right = call("relu", right);
    summed.reset();
  } else if (chance(20)) {
    Expression other = floats(indices, 0);
    right.text += " + " + other.text;
    right.type = commonType(right.type, other.type);
    summed.reset();
  }
  assign(indices, right, summed);
}

/// The same tensor in another layout.
void Generator::reshardStatement() {
  Value *value = nullptr;
  if (chance(60))
    value = find([](const Value &value) { return !value.partial.empty(); });
  if (!value)
    value = find([](const Value &value) { return !value.dims.empty(); });
  if (!value)
    return;
  beginStatement();
  count("reshard");
  Expression right = read(*value);
  if (!value->partial.empty() && chance(40) && right.text.back() == ']' &&
      right.text.find('@') == std::string::npos)
    right.text += partialAxes(value->partial);
  beginStatement();
  assign(value->dims, right);
}

/// Another value for a name; what is carried keeps its type.
void Generator::finish(Value &value, const Expression &right) {
  if (!value.isState && value.depth == depth)
    value.type = right.type;
  value.magnitude = std::max(value.magnitude, right.magnitude);
  value.exact = right.exact && depth == 0;
  value.partial.clear();
  value.isUsed = false;
}

void Generator::update(Value &value) {
  beginStatement();
  used.append(value.dims.begin(), value.dims.end());
  // A carried value has one layout, which its declaration may say.
  bool carried = value.depth < depth;
  std::string left =
      value.name + list(value.dims, "left side", !carried || chance(30));
  if (isFloat(value.type)) {
    Expression right = bounded(floats(value.dims, 1 + below(2)), 0);
    if (chance(50)) {
      line(left + " += " + right.text);
      count("+=");
      right.type = value.type;
      right.magnitude = value.magnitude + 0.5;
    } else {
      std::string old = value.name + list(value.dims, "use", false);
      Expression all = right;
      if (chance(60))
        all.text = old + " * 0.5 + " + right.text;
      all.magnitude = std::max(value.magnitude, right.magnitude) + 0.3;
      all.type = commonType(value.type, right.type);
      line(left + " = " + all.text);
      right = all;
      count("rebinding");
    }
    finish(value, right);
    return;
  }
  Expression right = value.type == Type::Bool ? booleans(value.dims, 1)
                                              : integers(value.dims, 1);
  line(left + " = " + right.text);
  count("rebinding");
  finish(value, right);
}

void Generator::rebindStatement() {
  if (Value *value = find([](const Value &value) { return value.isAssigned; }))
    update(*value);
  else
    productStatement();
}

/// Indices before the last one or two of a tensor of `along`.
Dims Generator::headIndices(unsigned along) {
  Dims indices = pickDims(2, {along});
  llvm::erase(indices, along);
  return indices;
}

/// An index that is long enough for zigzag order over some of the axes: two
/// chunks of 128 positions for each device.
bool Generator::chooseLongIndex() {
  if (longIndex)
    return chance(60);
  int64_t devices = 1, all = 1;
  for (const Axis &axis : axes) {
    all *= axis.size;
    if (devices * axis.size <= 4 && chance(80))
      devices *= axis.size;
  }
  // The work of all devices together must stay little.
  if (devices == 1 || all > 8 || !chance(25))
    return false;
  longIndex = addDim(256 * devices);
  count("zigzag");
  return true;
}

void Generator::attentionBlock() {
  beginStatement();
  static const int64_t heads[] = {2, 4, 6, 8};
  bool isLong = chooseLongIndex();
  unsigned h = addDim(isLong ? 2 : heads[below(4)]);
  Dims batch = !isLong && chance(75) ? pickDims(1) : Dims();
  unsigned t = isLong ? *longIndex : pick(base);
  if (!isLong && (dims[t].extent > 16 || llvm::is_contained(batch, t)))
    t = addDim(randomExtent());
  bool decodes = chance(25) && !batch.empty();
  bool isSelf = isLong || (!decodes && chance(60));
  unsigned s = isSelf ? aliasOf(t) : addDim(randomExtent());
  Dims shared = batch, queries;
  if (!isLong && chance(70))
    shared.push_back(addDim(randomExtent())); // key-value heads
  if (!isLong && chance(60))
    queries.push_back(addDim(1 + below(4))); // query heads of each
  auto isTooLarge = [&] {
    if (isLong)
      return false;
    Dims all = shared;
    all.append(queries.begin(), queries.end());
    all.append({t, s, h});
    return volume(all) > options.maxWork;
  };
  while (isTooLarge() && shared.size() > batch.size())
    shared.pop_back();
  while (isTooLarge() && !queries.empty())
    queries.pop_back();
  if (isTooLarge())
    return productStatement();
  if (!queries.empty())
    count("grouped queries");
  placement[h] = {};
  Type type = pickFloat();
  Dims q = batch, k = batch;
  if (!decodes)
    q.push_back(t);
  k.push_back(s);
  for (unsigned i = batch.size(); i < shared.size(); ++i) {
    q.push_back(shared[i]);
    k.push_back(shared[i]);
  }
  q.append(queries.begin(), queries.end());
  Dims kept = q;
  q.push_back(h);
  k.push_back(h);
  used.append(q.begin(), q.end());
  used.push_back(s);
  auto operand = [&](const Dims &indices, bool mayRotate, unsigned position) {
    Expression made = chance(35) ? bounded(product(indices, 0), 1)
                                 : read(leaf(type, indices));
    if (made.type != type)
      made = cast(type, made);
    if (mayRotate && chance(30))
      made =
          call("rope[" + dims[position].name + ", " + dims[h].name + "]", made);
    return bounded(made, 1);
  };
  Expression query = operand(q, !decodes, t), key = operand(k, true, s);
  // Values have an index of their own for what they are, sometimes.
  Dims v = k, left = kept;
  if (chance(25)) {
    v.back() = addDim(randomExtent());
    count("values of another width");
  }
  left.push_back(v.back());
  Expression value = operand(v, false, s);
  std::string arguments;
  bool isCausal = chance(isLong ? 80 : 45);
  bool isWindowed = chance(isLong ? 40 : 25);
  if (isCausal)
    arguments += ", causal=true";
  if (isWindowed && window) {
    arguments += ", window=w";
  } else if (isWindowed) {
    arguments +=
        ", window=" + std::to_string(1 + below(isLong ? 140 : dims[s].extent));
    count("window");
  }
  // One index of the queries runs along the keys where nothing else is said.
  unsigned candidates = 0;
  for (unsigned dim : kept)
    candidates +=
        !llvm::is_contained(k, dim) && dims[dim].extent == dims[s].extent;
  if (isCausal || isWindowed) {
    if (candidates != 1 || chance(isLong ? 5 : 20)) {
      Dims at;
      if (!decodes && chance(50)) {
        arguments += ", at=iota[" + dims[t].name + "]";
      } else {
        if (decodes || !batch.empty())
          at = batch;
        if (!decodes && (batch.empty() || chance(50)))
          at.push_back(t);
        arguments += ", at=" + positions(at).text;
      }
      count("at");
    }
  }
  if (isCausal)
    count("causal");
  if (chance(20)) {
    arguments += ", scale=0.5";
    count("scale");
  }
  if (chance(20)) {
    arguments += ", softcap=5.0";
    count("softcap");
  }
  auto argument = [&](const char *name, const Dims &indices) {
    arguments += std::string(", ") + name + "=" +
                 bounded(read(leaf(type, indices)), 1).text;
    count(name);
  };
  if (chance(25))
    argument("sink", Dims(llvm::drop_begin(kept, batch.size())));
  if (!isLong && chance(15)) {
    Dims indices(llvm::drop_begin(kept, batch.size()));
    indices.push_back(s);
    argument("bias", indices);
  }
  Expression right;
  right.text = "attention[" + dims[h].name + ", " + dims[s].name + "](" +
               query.text + ", " + key.text + ", " + value.text + arguments +
               ")";
  right.type = type;
  right.magnitude = value.magnitude;
  right.exact = false;
  count("attention");
  assign(left, right);
}

/// Tokens that go to experts and come back. Their scores do not depend on the
/// order of sums, so that every run chooses alike.
void Generator::expertsBlock() {
  Dims groups = chance(60) ? pickDims(1) : Dims();
  unsigned t = addDim(randomExtent()), e = addDim(1 + randomExtent());
  // Slots suffice for any picks where each token goes to all experts.
  bool isDropless = dims[e].extent <= 3 && chance(60);
  int64_t picksOfToken = isDropless
                             ? dims[e].extent
                             : 1 + below(std::min<int64_t>(3, dims[e].extent));
  unsigned c = addDim(isDropless ? dims[t].extent : 1 + below(4));
  unsigned d = addDim(randomExtent());
  Dims tokens = groups, chosen = groups, slots = groups;
  tokens.append({t, d});
  chosen.append({t, e});
  slots.append({e, c, d});
  Dims all = slots;
  all.push_back(t);
  if (volume(all) > options.maxWork)
    return productStatement();
  tokenDims.push_back(t);
  auto of = [&](unsigned first, unsigned second) {
    return "[" + dims[first].name + ", " + dims[second].name + "](";
  };
  std::string k = ", k=" + std::to_string(picksOfToken);
  std::string how = k + (isDropless ? ", dropless=true" : "");
  beginStatement({e});
  used.append(chosen.begin(), chosen.end());
  Expression picked = exactFloats(chosen);
  picked.text = "topk[" + dims[e].name + "](" + picked.text + k + ")";
  picked.type = Type::Bool;
  picked.magnitude = 0;
  Value &picks = assign(chosen, picked);
  count("topk");
  auto plain = [&](Value &value) {
    return reference(value, /*mayAnnotate=*/false);
  };
  beginStatement();
  used.append(all.begin(), all.end());
  Expression sent = bounded(floatLeaf(tokens), 1);
  sent.text =
      "dispatch" + of(e, c) + sent.text + ", " + plain(picks) + how + ")";
  Value *at = &assign(slots, sent);
  count("dispatch");
  if (isDropless)
    count("dropless");
  if (chance(60)) {
    unsigned f = addDim(randomExtent());
    beginStatement();
    used.append(slots.begin(), slots.end());
    Expression made;
    Expression weight = bounded(floatLeaf({e, d, f}), 0.3);
    made.text = plain(*at) + " * " + inParentheses(weight);
    made.type = commonType(at->type, weight.type);
    made.magnitude = at->magnitude + 1;
    made.exact = made.isAtom = false;
    slots.back() = tokens.back() = f;
    at = &assign(slots, made);
  }
  beginStatement();
  used.append(tokens.begin(), tokens.end());
  Expression back;
  back.type = at->type;
  std::string weights;
  if (chance(70)) {
    Expression weight = bounded(floatLeaf(chosen), 0.3);
    weights = ", " + weight.text;
    back.type = commonType(back.type, weight.type);
    count("weights of experts");
  }
  back.text = "combine" + of(e, c) + plain(*at) + ", " + plain(picks) +
              weights + how + ")";
  back.magnitude = 1.5;
  back.exact = false;
  assign(tokens, back);
  count("combine");
}

void Generator::ropeStatement() {
  unsigned h = addDim(2 * (1 + below(4)));
  Dims indices = pickDims(3, {h});
  if (indices.empty())
    return productStatement();
  beginStatement({h});
  used.append(indices.begin(), indices.end());
  used.push_back(h);
  unsigned t = indices[below(indices.size())];
  Dims all = indices;
  all.push_back(h);
  Expression argument = floatLeaf(all), right = argument;
  bool given = chance(40);
  right.text = "rope[" + (given ? "" : dims[t].name + ", ") + dims[h].name +
               "](" + argument.text;
  if (given) {
    right.text += ", at=" + positions({t}).text;
    count("at");
  }
  if (chance(30))
    right.text += ", theta=500_000";
  right.text += ")";
  count("rope");
  right.exact = false;
  assign(all, right);
}

void Generator::lossStatement() {
  unsigned v = pick(base);
  Dims indices = headIndices(v), all = indices;
  all.push_back(v);
  beginStatement();
  used.append(all.begin(), all.end());
  Expression logits = bounded(chance(40) ? product(all, 0) : floatLeaf(all), 1);
  Expression right = logits;
  right.text = "cross_entropy[" + dims[v].name + "](" + logits.text + ", " +
               positions(indices).text;
  if (chance(20))
    right.text += ", chunks=all";
  else if (!indices.empty() && chance(30))
    right.text += ", chunks=" + dims[indices.front()].name;
  right.text += ")";
  right.exact = false;
  right.magnitude = 1.5;
  count("cross_entropy");
  if (!indices.empty() && chance(40)) {
    std::vector<std::string> names;
    for (unsigned dim : indices)
      names.push_back(dims[dim].name);
    right = call("mean[" + llvm::join(names, ", ") + "]", right);
    indices.clear();
  }
  assign(indices, right);
}

void Generator::splitStatement() {
  unsigned d = pick(base);
  Dims indices = headIndices(d), all = indices;
  all.insert(all.begin() + below(all.size() + 1), d);
  std::vector<int64_t> factors;
  for (int64_t i = 1; i <= dims[d].extent; ++i)
    if (dims[d].extent % i == 0)
      factors.push_back(i);
  int64_t factor = pick(factors);
  unsigned a = addDim(factor);
  unsigned b =
      addDim(dims[d].extent / factor, dims[d].name + " / " + dims[a].name);
  beginStatement();
  used.append(all.begin(), all.end());
  Expression right = call("split[" + dims[d].name + " -> (" + dims[a].name +
                              ", " + dims[b].name + ")]",
                          chance(70) ? floatLeaf(all) : integers(all, 0));
  indices.push_back(a);
  indices.push_back(b);
  beginStatement();
  assign(indices, right);
}

void Generator::mergeStatement() {
  Dims all = pickDims(3);
  if (all.size() < 2)
    return productStatement();
  unsigned a = all[0], b = all[1];
  unsigned d = addDim(dims[a].extent * dims[b].extent,
                      dims[a].name + " * " + dims[b].name);
  Dims indices(all.begin() + 2, all.end());
  shuffle(all);
  beginStatement();
  used.append(all.begin(), all.end());
  Expression right = call("merge[(" + dims[a].name + ", " + dims[b].name +
                              ") -> " + dims[d].name + "]",
                          chance(70) ? floatLeaf(all) : integers(all, 0));
  indices.push_back(d);
  beginStatement();
  Value &made = assign(indices, right);
  // The merged index is one like others from here on.
  if (!inLayer && depth == 0 && volume(made.dims) <= 64)
    base.push_back(d);
}

void Generator::sliceStatement() {
  unsigned d = pick(base);
  Dims indices = headIndices(d), all = indices;
  all.insert(all.begin() + below(all.size() + 1), d);
  int64_t extent = dims[d].extent, size = 1 + below(extent);
  if (extent % 2 == 0 && chance(50))
    size = extent / 2;
  int64_t first = below(extent - size + 1);
  unsigned j = addDim(size);
  beginStatement();
  used.append(all.begin(), all.end());
  Expression right =
      call("slice[" + dims[d].name + ": " + std::to_string(first) + ".." +
               std::to_string(first + size) + " -> " + dims[j].name + "]",
           chance(70) ? floatLeaf(all) : integers(all, 0));
  indices.push_back(j);
  beginStatement();
  assign(indices, right);
}

void Generator::concatStatement() {
  unsigned parts = 2 + chance(25);
  Dims indices = pickDims(2);
  Dims pieces;
  for (unsigned dim : base)
    if (!llvm::is_contained(indices, dim) && pieces.size() < parts)
      pieces.push_back(dim);
  if (pieces.size() < 2)
    return productStatement();
  std::vector<std::string> names, sum;
  int64_t extent = 0;
  for (unsigned dim : pieces) {
    names.push_back(dims[dim].name);
    extent += dims[dim].extent;
  }
  unsigned d = addDim(extent, llvm::join(names, " + "));
  beginStatement();
  used.append(indices.begin(), indices.end());
  used.append(pieces.begin(), pieces.end());
  Type type = pickFloat();
  std::vector<std::string> operands;
  Expression right;
  right.type = type;
  for (unsigned dim : pieces) {
    Dims all = indices;
    all.insert(all.begin() + below(all.size() + 1), dim);
    Expression operand = floatLeaf(all);
    if (operand.type != type)
      operand = cast(type, operand);
    right.magnitude = std::max(right.magnitude, operand.magnitude);
    right.exact &= operand.exact;
    operands.push_back(operand.text);
  }
  right.text = "concat[(" + llvm::join(names, ", ") + ") -> " + dims[d].name +
               "](" + llvm::join(operands, ", ") + ")";
  count("concat");
  indices.push_back(d);
  beginStatement();
  assign(indices, right);
}

/// Reads and updates a state; in a repeat also this iteration's part of one
/// that is declared outside.
void Generator::stateStatement() {
  if (trains)
    return productStatement();
  Dims indices = pickDims(3);
  if (!repeats.empty() && !inLayer && chance(35)) {
    Dims all{repeats.back()};
    all.append(indices.begin(), indices.end());
    Value &state = declare("state", pickFloat(), all, true);
    beginStatement();
    used.append(indices.begin(), indices.end());
    std::string part = state.name + list(all, "use", false);
    line(part + " = " + part + " * 0.5 + " +
         bounded(floats(indices, 1), 0).text);
    count("stacked state");
    return;
  }
  Value *state = chance(50) ? find([](const Value &value) {
    return value.isState && isFloat(value.type);
  })
                            : nullptr;
  if (!state)
    state = &declare("state", pickFloat(), indices);
  update(*state);
}

/// One position of a cache, then something that reads it.
void Generator::cacheStatement() {
  if (trains)
    return productStatement();
  unsigned s = pick(base);
  Dims indices = headIndices(s);
  if (indices.empty())
    return stateStatement();
  Dims all = indices;
  size_t place = below(all.size() + 1);
  all.insert(all.begin() + place, s);
  Value *cache = chance(30) ? find([&](const Value &value) {
    return value.isState && ArrayRef(value.dims) == ArrayRef(all);
  })
                            : nullptr;
  if (!cache)
    cache = &declare("state", pickFloat(), all);
  beginStatement();
  used.append(all.begin(), all.end());
  std::vector<std::string> parts;
  for (unsigned dim : all)
    parts.push_back(dims[dim].name);
  parts[place] =
      chance(20) ? std::to_string(below(dims[s].extent))
                 : positions(chance(70) ? Dims{indices[below(indices.size())]}
                                        : Dims{})
                       .text;
  Expression right = bounded(floats(indices, 1), 1);
  bool adds = chance(25);
  line(cache->name + "[" + llvm::join(parts, ", ") + "]" +
       (adds ? " += " : " = ") + right.text);
  count(adds ? "scatter +=" : "scatter");
  count("state scatter");
  right.type = cache->type;
  right.exact &= !adds;
  finish(*cache, right);
  if (chance(60)) {
    beginStatement();
    used.append(all.begin(), all.end());
    Expression now = read(*cache);
    if (!isWideFloat(now.type))
      now = cast(Type::F32, now);
    assign(all, now);
  }
}

/// Elements of a value that positions with an index of their own name.
void Generator::scatterStatement() {
  Value *target = find([&](const Value &value) {
    return value.isAssigned && isWideFloat(value.type) && !value.dims.empty();
  });
  if (!target)
    return cacheStatement();
  Dims all = target->dims, rest = all;
  size_t place = below(all.size());
  rest.erase(rest.begin() + place);
  beginStatement();
  used.append(all.begin(), all.end());
  Dims at;
  if (!rest.empty() && chance(40)) {
    at.push_back(rest[below(rest.size())]);
  } else if (std::optional<unsigned> own = pickContracted(rest)) {
    at.push_back(*own);
    rest.push_back(*own);
  }
  std::vector<std::string> parts;
  for (unsigned dim : all)
    parts.push_back(dims[dim].name);
  parts[place] = positions(at).text;
  // The right side has every index that the left side names.
  Expression right = bounded(floatLeaf(rest), 1);
  bool adds = chance(50);
  line(target->name + "[" + llvm::join(parts, ", ") + "]" +
       (adds ? " += " : " = ") + right.text);
  count(adds ? "scatter +=" : "scatter");
  Expression now;
  now.type = target->type;
  now.magnitude = target->magnitude + (adds ? 1 : 0);
  now.exact = target->exact && right.exact && !adds;
  finish(*target, now);
}

//===----------------------------------------------------------------------===//
// Layers and repeats
//===----------------------------------------------------------------------===//

void Generator::makeLayer() {
  Layer layer;
  layer.name = "layer" + std::to_string(layers.size());
  std::vector<std::unique_ptr<Value>> outside = std::move(visible);
  visible.clear();
  std::string text;
  out = &text;
  inLayer = true;
  indent = 1;
  std::vector<std::string> parameters;
  beginStatement();
  for (unsigned i = 0, n = 1 + below(2); i < n; ++i) {
    auto value = std::make_unique<Value>();
    value->name = fresh();
    value->type = pickFloat();
    value->dims = pickDims(3);
    value->magnitude = 1;
    value->exact = false;
    value->isAssigned = chance(30);
    layer.parameters.push_back({value->name, value->type, value->dims});
    parameters.push_back(value->name + ": " + nameOf(value->type) +
                         list(value->dims, "parameter", chance(50)));
    visible.push_back(std::move(value));
  }
  if (chance(30)) {
    layer.parameters.push_back({"w", Type::Int32, {}, true});
    parameters.push_back("w: dim");
    window = 0;
    count("w: dim");
  }
  for (unsigned i = 0, n = 1 + below(4); i < n; ++i)
    statement();
  if (window && chance(70))
    attentionBlock();
  window.reset();
  std::vector<Value *> made;
  for (const auto &value : visible)
    if (value->isAssigned && isWideFloat(value->type))
      made.push_back(value.get());
  std::vector<std::string> results;
  if (made.empty()) {
    productStatement();
    made.push_back(visible.back().get());
  }
  for (unsigned i = 0, n = 1 + chance(25); i < n && !made.empty(); ++i) {
    layer.results.push_back(*made.back());
    results.push_back(made.back()->name);
    made.pop_back();
  }
  out = &body;
  indent = 0;
  inLayer = false;
  visible = std::move(outside);
  layerText += "layer " + layer.name + "(" + llvm::join(parameters, ", ") +
               ") -> (" + llvm::join(results, ", ") + ") {\n" + text + "}\n";
  if (results.size() > 1)
    count("layer with two results");
  count("layer");
  layers.push_back(std::move(layer));
}

void Generator::callStatement() {
  if (layers.empty())
    return productStatement();
  const Layer &layer = pick(layers);
  beginStatement();
  std::vector<std::string> arguments;
  bool isNamed = chance(20);
  for (const Layer::Parameter &parameter : layer.parameters) {
    std::string text;
    if (parameter.isWindow) {
      text = chance(40) ? "none" : std::to_string(1 + below(5));
    } else {
      Expression argument = bounded(read(leaf(parameter.type, parameter.dims)));
      if (argument.type != parameter.type)
        argument = cast(parameter.type, argument);
      text = argument.text;
    }
    arguments.push_back((isNamed ? parameter.name + "=" : "") + text);
  }
  std::vector<std::string> names;
  std::vector<std::unique_ptr<Value>> results;
  for (const Value &value : layer.results) {
    auto made = std::make_unique<Value>(value);
    made->name = fresh();
    made->depth = depth;
    made->isAssigned = true;
    made->isUsed = false;
    made->exact = false;
    made->partial.clear();
    names.push_back(made->name);
    results.push_back(std::move(made));
  }
  beginStatement();
  std::string left = llvm::join(names, ", ");
  if (names.size() == 1 && chance(40))
    left += list(results[0]->dims, "left side");
  line(left + " = " + layer.name + "(" + llvm::join(arguments, ", ") + ")");
  for (auto &value : results)
    visible.push_back(std::move(value));
  count("call");
}

/// Values made inside stay inside; names that existed and are assigned are
/// carried.
void Generator::repeat() {
  std::vector<Value *> carried;
  for (const auto &value : visible) {
    if (value->isAssigned || value->isState) {
      value->exact &= !isFloat(value->type);
      value->partial.clear();
    }
    if (value->isAssigned && isWideFloat(value->type))
      carried.push_back(value.get());
  }
  if (carried.empty())
    return productStatement();
  unsigned l = addDim(1 + below(4));
  if (depth == 0 && !inLayer)
    longestRepeat = std::max(longestRepeat, unsigned(dims[l].extent));
  size_t outside = visible.size();
  line("repeat " + dims[l].name + " {");
  repeats.push_back(l);
  ++indent;
  ++depth;
  for (unsigned i = 0, n = 1 + below(3); i < n; ++i)
    statement();
  for (unsigned i = 0, n = 1 + chance(30); i < n; ++i)
    update(*pick(carried));
  --depth;
  --indent;
  repeats.pop_back();
  line("}");
  count(depth ? "nested repeat" : "repeat");
  visible.resize(outside);
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

void Generator::simpleStatement() {
  unsigned kind = below(100);
  if (kind < 45)
    productStatement();
  else if (kind < 75)
    expressionStatement();
  else if (kind < 80)
    reshardStatement();
  else if (kind < 85)
    rebindStatement();
  else if (depth == 0)
    repeat();
  else
    productStatement();
}

void Generator::statement() {
  if (options.simple)
    return simpleStatement();
  struct Kind {
    unsigned weight;
    void (Generator::*make)();
  };
  static const Kind kinds[] = {
      {20, &Generator::expressionStatement}, {14, &Generator::productStatement},
      {8, &Generator::reshardStatement},     {6, &Generator::rebindStatement},
      {6, &Generator::attentionBlock},       {4, &Generator::ropeStatement},
      {4, &Generator::lossStatement},        {4, &Generator::splitStatement},
      {4, &Generator::mergeStatement},       {4, &Generator::sliceStatement},
      {4, &Generator::concatStatement},      {5, &Generator::stateStatement},
      {6, &Generator::cacheStatement},       {5, &Generator::scatterStatement},
      {7, &Generator::callStatement},        {8, &Generator::repeat},
  };
  unsigned total = 0;
  for (const Kind &kind : kinds)
    total += kind.weight;
  unsigned drawn = below(total);
  for (const Kind &kind : kinds) {
    if (drawn >= kind.weight) {
      drawn -= kind.weight;
      continue;
    }
    bool isRepeat = kind.make == &Generator::repeat;
    if (isRepeat && (inLayer || depth == 2))
      return productStatement();
    return (this->*kind.make)();
  }
}

void Generator::outputs() {
  bool any = false;
  for (const auto &value : visible) {
    if (!value->isAssigned || (value->isUsed && !chance(25)))
      continue;
    any = true;
    beginStatement();
    std::string indices =
        value->dims.empty() || chance(50) ? "" : list(value->dims, "output");
    line("output " + value->name + indices);
  }
  if (any)
    return;
  productStatement();
  line("output " + visible.back()->name);
}

std::string Generator::randomOptimizer() {
  std::string name = chance(60) ? "adamw" : "sgd";
  std::vector<std::string> arguments;
  if (chance(30))
    arguments.push_back(name == "sgd" ? "momentum=none" : "moments=bf16");
  if (chance(40))
    arguments.push_back(chance(50) ? "master=none" : "lr=0.25");
  count(name);
  return name +
         (arguments.empty() ? "" : "(" + llvm::join(arguments, ", ") + ")");
}

/// Losses of a product with a weight, of which the backward pass runs in
/// chunks; over the indices in brackets.
std::string Generator::chunkedLoss() {
  unsigned v = pick(base);
  Dims indices = headIndices(v);
  if (indices.empty())
    return "";
  unsigned d = addDim(randomExtent());
  Dims rows = indices;
  rows.push_back(d);
  beginStatement();
  used.append(rows.begin(), rows.end());
  used.push_back(v);
  Expression product;
  product.text = bounded(floatLeaf(rows)).text + " * ";
  product.text += read(declare("weight", Type::F32, {d, v})).text;
  if (chance(30))
    product = call("tanh", product);
  std::vector<std::string> names;
  for (unsigned dim : indices)
    names.push_back(dims[dim].name);
  std::string chunks = chance(40) ? "all" : pick(names);
  count(chunks == "all" ? "trained loss, chunks=all" : "trained loss, chunks");
  return "[" + llvm::join(names, ", ") + "](f32(cross_entropy[" + dims[v].name +
         "](" + product.text + ", " + positions(indices).text +
         ", chunks=" + chunks + ")))";
}

/// A loss from some of the values, and how it is trained.
void Generator::trainBlock() {
  std::vector<Value *> known;
  for (const auto &value : visible)
    if (value->isAssigned && isFloat(value->type))
      known.push_back(value.get());
  if (known.empty() || weights.empty()) {
    // A product with a weight.
    Value &weight = declare("weight", Type::F32, {base[0]});
    assign({base[0]}, read(weight));
    known.push_back(visible.back().get());
  }
  shuffle(known);
  std::vector<std::string> summands;
  bool isMean = chance(70);
  for (Value *value : llvm::ArrayRef(known).take_front(3)) {
    value->isUsed = true;
    std::vector<std::string> names;
    for (unsigned dim : value->dims)
      names.push_back(dims[dim].name);
    std::string text =
        "f32(" + value->name +
        (names.empty() ? "" : "[" + llvm::join(names, ", ") + "]") + ")";
    if (value->magnitude > 0.5 || chance(50))
      text = "tanh(" + text + ")";
    if (!names.empty())
      text = std::string(isMean ? "mean[" : "sum[") + llvm::join(names, ", ") +
             "](" + text + ")";
    summands.push_back(text);
  }
  if (chance(40))
    if (std::string text = chunkedLoss(); !text.empty())
      summands.push_back((isMean ? "mean" : "sum") + text);
  line("loss[] = " + llvm::join(summands, " + "));
  line("train {");
  line("  loss = loss");
  line("  optimizer = " + randomOptimizer());
  static const char *const remats[] = {"auto", "none", "full"};
  const char *remat = remats[below(3)];
  if (longestRepeat > 1 && chance(40)) {
    unsigned length = 1 + below(longestRepeat);
    line("  remat = every(" + std::to_string(length) + ")");
    count(length == 1 ? "remat = every(1)" : "remat = every(k)");
  } else {
    line(std::string("  remat = ") + remat);
    count(std::string("remat = ") + remat);
  }
  if (chance(40)) {
    line("  clip = 0.5");
    count("clip");
  }
  if (chance(20))
    line("  gradients = bf16");
  Dims batches;
  for (unsigned dim : inputDims)
    if (!llvm::is_contained(weightDims, dim) &&
        !llvm::is_contained(tokenDims, dim) && dims[dim].extent % 2 == 0)
      batches.push_back(dim);
  if (!batches.empty() && chance(70)) {
    line("  batch = " + dims[pick(batches)].name);
    line("  microbatches = 2");
    count("microbatches = 2");
  } else {
    line("  microbatches = 1");
  }
  for (const auto &[name, indices] : weights) {
    if (!indices.empty() && chance(20)) {
      static const char *const kinds[] = {"gradient", "moments", "master"};
      const char *kind = kinds[below(3)];
      std::vector<std::string> texts;
      beginStatement();
      for (unsigned dim : indices) {
        const Axes &where = placeOf(dim);
        texts.push_back(where.empty() ? dims[dim].name : place(dim, where));
      }
      std::string pin = "[" + llvm::join(texts, ", ") + "]";
      if (kind == kinds[0] && !freeAxes.empty() && chance(40))
        pin += partialAxes({freeAxes.front()});
      line("  " + std::string(kind) + " " + name + pin);
      count(std::string("pin of ") + kind);
    }
  }
  line("}");
  count("train");
}

RandomProgram Generator::run() {
  result.allowPadding = options.padding && !options.simple && chance(12);
  makeMesh();
  makeDims();
  if (!options.simple)
    for (unsigned i = 0, n = chance(40) ? 1 + below(2) : 0; i < n; ++i)
      makeLayer();
  unsigned span = options.maxStatements - options.minStatements + 1;
  for (unsigned i = 0, n = options.minStatements + below(span); i < n; ++i)
    statement();
  if (dispatches && !options.simple)
    expertsBlock();
  if (trains)
    trainBlock();
  else
    outputs();
  std::string text = "hardware " + hardware;
  if (options.hardware.empty() && result.features.count("f64"))
    text += " { flops.f64 = 1 TFLOP/s }";
  text += "\nmesh [";
  std::vector<std::string> parts;
  for (const Axis &axis : axes)
    parts.push_back(axis.name + "=" + std::to_string(axis.size));
  text += llvm::join(parts, ", ") + "]\n";
  parts.clear();
  for (const Dim &dim : dims)
    parts.push_back(dim.name + " = " + dim.definition);
  text += "dim " + llvm::join(parts, ", ") + "\n";
  if (result.allowPadding) {
    text = "// needs --allow-padding\n" + text;
    count("--allow-padding");
  }
  result.text = text + head + layerText + body;
  return std::move(result);
}

} // namespace

RandomProgram
shardc::test::makeRandomProgram(uint64_t seed,
                                const RandomProgramOptions &options) {
  return Generator(seed, options).run();
}
