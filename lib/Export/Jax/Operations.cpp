//===- Operations.cpp - Operations that compute, as jnp code --------------===//
//
// The meaning of each function is docs/Language.md's. Statistics over a sharded
// index come from the operation's last operands, if it has any.
//
//===----------------------------------------------------------------------===//

#include "Function.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;
using shd::Function;

using Names = IndexedOp::Names;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

static bool isFloat(Type type) { return isa<FloatType>(type); }

/// The type in which elements of `type` are computed with: XLA's CPU has no
/// arithmetic on 4 bits, and JAX none between types of 8.
static Type computedIn(Type type) {
  MLIRContext *context = type.getContext();
  if (isFloat(type) && type.getIntOrFloatBitWidth() <= 8)
    return Float32Type::get(context);
  if (type.isInteger(4))
    return IntegerType::get(context, 32);
  return type;
}

/// The type that holds both, as the language has it.
static Type commonType(Type a, Type b) {
  if (a == b || (b.isInteger(1)))
    return a;
  if (a.isInteger(1))
    return b;
  if (isFloat(a) != isFloat(b))
    return isFloat(a) ? a : b;
  MLIRContext *context = a.getContext();
  if (isFloat(a)) {
    // tf32 has 19 bits, between f16 and f32.
    unsigned widthA = cast<FloatType>(a).getWidth();
    unsigned widthB = cast<FloatType>(b).getWidth();
    if (widthA == widthB)
      return Float32Type::get(context);
    return widthA > widthB ? a : b;
  }
  unsigned widthA = a.getIntOrFloatBitWidth();
  unsigned widthB = b.getIntOrFloatBitWidth();
  if (a.isUnsignedInteger() == b.isUnsignedInteger())
    return widthA >= widthB ? a : b;
  unsigned width = a.isUnsignedInteger() ? std::max(widthB, 2 * widthA)
                                         : std::max(widthA, 2 * widthB);
  return IntegerType::get(context, width);
}

/// The type in which sums of elements of `type` accumulate.
static Type accumulator(Type type) {
  if (type.isF64())
    return type;
  if (isFloat(type))
    return Float32Type::get(type.getContext());
  return IntegerType::get(type.getContext(), 32);
}

/// Types without an infinity, to which conversions saturate.
static bool saturates(Type type) {
  return isa<Float8E4M3FNType, Float8E8M0FNUType, Float4E2M1FNType>(type);
}

std::string FunctionPrinter::convert(const std::string &expression, Type from,
                                     Type to) {
  if (from == to)
    return expression;
  if (saturates(to))
    return cat(file.helper("saturate"), "(", expression, ", ", file.type(to),
               ")");
  return cat(atom(expression), ".astype(", file.type(to), ")");
}

/// The type in which normalisations and losses compute.
static Type floatTypeOf(Value value) {
  Type type = elementOf(value);
  return type.isF64() ? type : Float32Type::get(type.getContext());
}

std::string FunctionPrinter::inFloat(Value value) {
  return convert(array(value), elementOf(value), floatTypeOf(value));
}

void FunctionPrinter::defineAs(Value value, const std::string &expression,
                               Type from) {
  define(value, convert(expression, from, elementOf(value)));
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

static Names namesOf(ArrayAttr list) {
  return llvm::to_vector<4>(list.getAsValueRange<StringAttr>());
}

static Names without(const Names &names, ArrayRef<StringRef> dropped) {
  Names rest;
  llvm::copy_if(names, std::back_inserter(rest), [&](StringRef name) {
    return !llvm::is_contained(dropped, name);
  });
  return rest;
}

static unsigned axisOf(const Names &names, StringRef index) {
  return llvm::find(names, index) - names.begin();
}

/// `1` or `(0, 2)`: where `indices` stand in `names`.
static std::string axesOf(const Names &names, ArrayRef<StringRef> indices) {
  SmallVector<std::string> axes;
  for (auto [axis, name] : llvm::enumerate(names))
    if (llvm::is_contained(indices, name))
      axes.push_back(std::to_string(axis));
  return axes.size() == 1 ? axes.front() : pythonTuple(axes);
}

static bool anySharded(const IndexedOp &indexed, ArrayRef<StringRef> indices) {
  return llvm::any_of(
      indices, [&](StringRef index) { return indexed.isSharded(index); });
}

/// Gives each index of an einsum a letter, its own if it is one.
class Letters {
public:
  std::string of(ArrayRef<StringRef> names) {
    std::string text;
    for (StringRef name : names)
      text += letterOf(name);
    return text;
  }

private:
  char letterOf(StringRef name) {
    auto known = letters.find(name);
    if (known != letters.end())
      return known->second;
    char letter = 0;
    auto tryLetter = [&](char candidate) {
      if (!letter && llvm::isAlpha(candidate) && taken.insert(candidate).second)
        letter = candidate;
    };
    for (char candidate : name)
      tryLetter(candidate);
    for (char candidate = 'a'; candidate <= 'z'; ++candidate)
      tryLetter(candidate);
    for (char candidate = 'A'; candidate <= 'Z'; ++candidate)
      tryLetter(candidate);
    return letters[name] = letter;
  }

  llvm::StringMap<char> letters;
  std::set<char> taken;
};

/// `"BD,DF->BF"`
static std::string subscripts(const Names &a, const Names &b,
                              const Names &result) {
  Letters letters;
  std::string lhs = letters.of(a), rhs = letters.of(b);
  return quoted(cat(lhs, ",", rhs, "->", letters.of(result)));
}

/// The statistics that the devices have agreed on.
static SmallVector<Value> statsOf(shd::ShardingRuleOpInterface op) {
  return llvm::to_vector(op.getStats());
}

void FunctionPrinter::compute(shd::ReshardOp op) {
  expressions[op] = array(op.getInput());
}

LogicalResult FunctionPrinter::printCompute(shd::ShardingRuleOpInterface op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<shd::EinsumOp, shd::ElementwiseOp, shd::ReduceOp, shd::NormalizeOp,
            shd::AttentionOp, shd::AttentionGradOp, shd::CrossEntropyOp,
            shd::GatherOp, shd::ScatterOp, shd::ScatterSumOp, shd::RopeOp,
            shd::TopKOp, shd::DispatchOp, shd::CombineOp, shd::CombineGradOp,
            shd::SplitOp, shd::MergeOp, shd::SliceOp, shd::ConcatOp,
            shd::IotaOp, shd::ReshardOp, shd::AdamWOp, shd::SgdOp>(
          [&](auto typed) {
            compute(typed);
            return success();
          })
      .Default([](Operation *other) -> LogicalResult {
        return other->emitError()
               << "--emit-jax does not support '" << other->getName() << "'";
      });
}

//===----------------------------------------------------------------------===//
// Products and elementwise operations
//===----------------------------------------------------------------------===//

void FunctionPrinter::compute(shd::EinsumOp op) {
  IndexedOp indexed(file, op);
  Type common = commonType(elementOf(op.getLhs()), elementOf(op.getRhs()));
  // XLA multiplies types of 8 bits.
  Type computed =
      common.getIntOrFloatBitWidth() == 4 ? computedIn(common) : common;
  Type sum = accumulator(computed);
  auto operand = [&](Value value) {
    return convert(array(value), elementOf(value), computed);
  };
  std::string arguments =
      cat(subscripts(indexed.operand(0), indexed.operand(1), indexed.result()),
          ", ", operand(op.getLhs()), ", ", operand(op.getRhs()));
  if (sum.isF32())
    defineAs(op.getResult(), cat(file.helper("einsum"), "(", arguments, ")"),
             sum);
  else
    defineAs(op.getResult(),
             cat("jnp.einsum(", arguments,
                 ", preferred_element_type=", file.type(sum), ")"),
             sum);
}

/// The JAX name of each function of one operand.
static StringRef unaryFunction(Function function) {
  switch (function) {
  case Function::Relu:
    return "jax.nn.relu";
  case Function::Gelu:
    return "jax.nn.gelu";
  case Function::Silu:
    return "jax.nn.silu";
  case Function::Sigmoid:
    return "jax.nn.sigmoid";
  case Function::Tanh:
    return "jnp.tanh";
  case Function::Exp:
    return "jnp.exp";
  case Function::Log:
    return "jnp.log";
  case Function::Sqrt:
    return "jnp.sqrt";
  case Function::Rsqrt:
    return "lax.rsqrt";
  case Function::Square:
    return "jnp.square";
  case Function::Abs:
    return "jnp.abs";
  case Function::StopGradient:
    return "lax.stop_gradient";
  default:
    return "";
  }
}

static StringRef binaryOperator(Function function) {
  switch (function) {
  case Function::Add:
    return "+";
  case Function::Sub:
    return "-";
  case Function::Mul:
    return "*";
  case Function::Div:
    return "/";
  case Function::Rem:
    return "%";
  case Function::Eq:
    return "==";
  case Function::Ne:
    return "!=";
  case Function::Lt:
    return "<";
  case Function::Le:
    return "<=";
  case Function::Gt:
    return ">";
  case Function::Ge:
    return ">=";
  default:
    return "";
  }
}

/// One function of terms that broadcast to the result.
static std::string applied(Function function, ArrayRef<std::string> terms) {
  switch (function) {
  case Function::Copy:
  case Function::Cast:
    return terms[0];
  case Function::Neg:
    return cat("-", atom(terms[0]));
  case Function::Maximum:
    return cat("jnp.maximum(", commas(terms), ")");
  case Function::Minimum:
    return cat("jnp.minimum(", commas(terms), ")");
  case Function::Where:
    return cat("jnp.where(", commas(terms), ")");
  default:
    if (StringRef sign = binaryOperator(function); !sign.empty())
      return cat(terms[0], " ", sign, " ", terms[1]);
    return cat(unaryFunction(function), "(", terms[0], ")");
  }
}

/// Conversions that a program asks for saturate; integers are rounded to even.
static bool isSaturatingCast(Type from, Type to) {
  if (from.isInteger(1) || to.isInteger(1) || isFloat(to))
    return false;
  return isFloat(from) || from != to;
}

void FunctionPrinter::compute(shd::ElementwiseOp op) {
  IndexedOp indexed(file, op);
  Function function = op.getFunction();
  Type result = elementOf(op.getResult());
  bool compares = function >= Function::Eq && function <= Function::Ge;
  bool moves = function == Function::Copy || function == Function::Cast ||
               function == Function::StopGradient;
  unsigned first = function == Function::Where ? 1 : 0;
  Type common = compares ? elementOf(op.getInputs()[0]) : result;
  if (!moves)
    for (Value input : op.getInputs().drop_front(first))
      common = commonType(common, elementOf(input));
  Type computed = moves ? common : computedIn(common);

  Names target = indexed.result();
  SmallVector<std::string> terms;
  bool hasArray = false;
  llvm::StringSet<> covered;
  for (auto [number, input] : llvm::enumerate(op.getInputs())) {
    auto constant = input.getDefiningOp<shd::ConstantOp>();
    if (constant && !expressions.contains(input)) {
      terms.push_back(scalar(constant));
      continue;
    }
    hasArray = true;
    Names from = indexed.operand(number);
    for (StringRef name : from)
      covered.insert(name);
    std::string text = aligned(array(input), from, target);
    terms.push_back(moves || number < first
                        ? text
                        : convert(text, elementOf(input), computed));
  }
  Type made = compares ? result : computed;
  if (moves)
    made = elementOf(op.getInputs()[0]);
  if (!hasArray)
    terms[first] = cat("jnp.array(", terms[first], ", ",
                       file.type(moves ? made : computed), ")");
  std::string text = applied(function, terms);
  if (function == Function::Cast && isSaturatingCast(made, result))
    text =
        cat(file.helper("saturate"), "(", text, ", ", file.type(result), ")");
  else
    text = convert(text, made, result);
  if (llvm::any_of(target,
                   [&](StringRef name) { return !covered.contains(name); }))
    text = cat("jnp.broadcast_to(", text, ", ", indexed.shape(target), ")");
  define(op.getResult(), text);
}

//===----------------------------------------------------------------------===//
// Reductions and normalisations
//===----------------------------------------------------------------------===//

/// `size["B"]` or `(size["B"] * size["T"])`: how many elements `indices` count.
static std::string countOf(const IndexedOp &indexed,
                           ArrayRef<StringRef> indices) {
  SmallVector<std::string> extents;
  for (StringRef index : indices)
    extents.push_back(indexed.whole(index));
  std::string product = llvm::join(extents, " * ");
  return extents.size() == 1 ? product : cat("(", product, ")");
}

void FunctionPrinter::compute(shd::ReduceOp op) {
  IndexedOp indexed(file, op);
  Names input = indexed.operand(0), result = indexed.result();
  Names reduced = without(input, result), kept = without(input, reduced);
  Type from = elementOf(op.getInput());
  auto finish = [&](const std::string &text, Type made) {
    defineAs(op.getResult(), transposed(text, kept, result), made);
  };
  SmallVector<Value> stats = statsOf(op);
  std::string axes = axesOf(input, reduced);
  switch (op.getKind()) {
  case shd::Reduction::Sum:
  case shd::Reduction::Mean: {
    bool means = op.getKind() == shd::Reduction::Mean;
    Type sum = accumulator(from);
    if (means && !isFloat(sum))
      sum = Float32Type::get(op.getContext());
    std::string text = cat("jnp.sum(", array(op.getInput()), ", axis=", axes,
                           ", dtype=", file.type(sum), ")");
    if (!means)
      return finish(text, sum);
    return finish(cat(text, " / ", countOf(indexed, reduced)), sum);
  }
  case shd::Reduction::Max:
  case shd::Reduction::Min: {
    if (!stats.empty())
      return finish(array(stats[0]), from);
    StringRef name =
        op.getKind() == shd::Reduction::Max ? "jnp.max(" : "jnp.min(";
    return finish(cat(name, array(op.getInput()), ", axis=", axes, ")"), from);
  }
  case shd::Reduction::ArgMax:
    return define(op.getResult(),
                  stats.empty() ? argMax(op)
                                : transposed(array(stats[1]), kept, result));
  }
}

std::string FunctionPrinter::argMax(shd::ReduceOp op) {
  IndexedOp indexed(file, op);
  Names input = indexed.operand(0), result = indexed.result();
  Names reduced = without(input, result);
  std::string text = cat("jnp.argmax(", array(op.getInput()),
                         ", axis=", axesOf(input, reduced), ")");
  return cat(transposed(text, without(input, reduced), result), ".astype(",
             file.type(elementOf(op.getResult())), ")");
}

/// The value before scale and bias, from what this device holds.
std::string FunctionPrinter::normalizedWhole(shd::NormalizeOp op,
                                             const std::string &x,
                                             const std::string &axes) {
  switch (op.getKind()) {
  case shd::Normalization::Softmax:
    return cat("jax.nn.softmax(", x, ", axis=", axes, ")");
  case shd::Normalization::LogSumExp:
    return cat("jax.nn.logsumexp(", x, ", axis=", axes, ")");
  case shd::Normalization::RmsNorm:
    return cat(file.helper("rmsnorm"), "(", x, ", ", axes, ", ",
               number(op.getEps()), ")");
  case shd::Normalization::LayerNorm:
    return cat(file.helper("layernorm"), "(", x, ", ", axes, ", ",
               number(op.getEps()), ")");
  }
  llvm_unreachable("a new normalisation");
}

/// The same from statistics on which the devices agree, which broadcast to `x`.
std::string FunctionPrinter::normalizedParts(shd::NormalizeOp op,
                                             const std::string &x,
                                             ArrayRef<std::string> stats) {
  IndexedOp indexed(file, op);
  std::string count = countOf(indexed, namesOf(op.getOver()));
  std::string eps = number(op.getEps());
  switch (op.getKind()) {
  case shd::Normalization::Softmax:
    return cat("jnp.exp(", x, " - ", stats[0], ") / ", stats[1]);
  case shd::Normalization::LogSumExp:
    return cat("jnp.log(", stats[1], ") + ", stats[0]);
  case shd::Normalization::RmsNorm:
    return cat(x, " * lax.rsqrt(", stats[0], " / ", count, " + ", eps, ")");
  case shd::Normalization::LayerNorm: {
    std::string mean = names.make("mean"), variance = names.make("variance");
    line(cat(mean, " = ", stats[0], " / ", count));
    line(cat(variance, " = jnp.maximum(", stats[1], " / ", count,
             " - jnp.square(", mean, "), 0)"));
    return cat("(", x, " - ", mean, ") * lax.rsqrt(", variance, " + ", eps,
               ")");
  }
  }
  llvm_unreachable("a new normalisation");
}

void FunctionPrinter::compute(shd::NormalizeOp op) {
  IndexedOp indexed(file, op);
  Names input = indexed.operand(0), over = namesOf(op.getOver());
  Names kept = without(input, over);
  bool drops = op.getKind() == shd::Normalization::LogSumExp;
  std::string x = inFloat(op.getInputs()[0]);
  SmallVector<std::string> stats;
  for (Value stat : op.getStats())
    stats.push_back(aligned(array(stat), kept, drops ? kept : input));
  std::string text = stats.empty() ? normalizedWhole(op, x, axesOf(input, over))
                                   : normalizedParts(op, x, stats);
  for (auto [position, value] : llvm::enumerate(op.getInputs().drop_front()))
    text = cat(text, position == 0 ? " * " : " + ",
               aligned(inFloat(value), indexed.operand(position + 1), input));
  defineAs(op.getResult(),
           transposed(text, drops ? kept : input, indexed.result()),
           floatTypeOf(op.getInputs()[0]));
}

void FunctionPrinter::compute(shd::CrossEntropyOp op) {
  IndexedOp indexed(file, op);
  Names logits = indexed.operand(0), kept = without(logits, {op.getClasses()});
  if (int64_t chunks = op.getRowChunks())
    line(cat("# The plan counts on ",
             chunks == shd::kAllChunks
                 ? "one kernel with the product that makes the logits."
                 : cat(std::to_string(chunks), " chunks of the labels.")));
  std::string text;
  if (op.getStats().empty()) {
    std::string axis = axesOf(logits, {op.getClasses()});
    std::string x = inFloat(op.getLogits());
    std::string labels =
        transposed(position(indexed, op.getLabels(), op.getClasses()),
                   indexed.operand(1), kept);
    text = cat("jax.nn.logsumexp(", x, ", axis=", axis, ") - ",
               file.helper("pick"), "(", x, ", ", labels, ", ", axis, ")");
  } else {
    SmallVector<std::string> stats;
    for (Value stat : op.getStats())
      stats.push_back(array(stat));
    text = cat("jnp.log(", stats[1], ") + ", stats[0], " - ", stats[2]);
  }
  defineAs(op.getResult(), transposed(text, kept, indexed.result()),
           floatTypeOf(op.getLogits()));
}

//===----------------------------------------------------------------------===//
// Attention and positions
//===----------------------------------------------------------------------===//

/// Indices of the scores: q's without the head, then the keys'.
static Names scoreIndices(shd::AttentionOpInterface op,
                          const IndexedOp &indexed) {
  Names names =
      without(indexed.operand(shd::AttentionOp::kQueryOperand), {op.getHead()});
  names.push_back(op.getKey());
  return names;
}

/// The number by which scores are multiplied.
static std::string scaleOf(shd::AttentionOpInterface op,
                           const IndexedOp &indexed) {
  return op.getScale() ? number(*op.getScale())
                       : cat(indexed.whole(op.getHead()), " ** -0.5");
}

/// The shard of keys that travel around a ring, or null.
static spmd::ShardAttr travellingKeys(shd::AttentionOpInterface op,
                                      const IndexedOp &indexed) {
  spmd::ShardAttr shard = indexed.shardOf(op.getKey());
  return shard && shard.hasTravelled() ? shard : spmd::ShardAttr();
}

/// The shard of keys that come with a halo, or null.
static spmd::ShardAttr keysWithHalo(shd::AttentionOpInterface op,
                                    const IndexedOp &indexed) {
  spmd::ShardAttr shard = indexed.shardOf(op.getKey());
  return shard && shard.getHalo() > 0 ? shard : spmd::ShardAttr();
}

/// The positions of the keys that are here.
std::string FunctionPrinter::keyPositions(shd::AttentionOpInterface op) {
  auto typed = cast<shd::ShardingRuleOpInterface>(op.getOperation());
  IndexedOp indexed(file, typed);
  if (spmd::ShardAttr shard = keysWithHalo(op, indexed)) {
    auto small = cast<shd::ShardingRuleOpInterface>(file.small.lookup(op));
    int64_t smallHalo = IndexedOp(file, small).shardOf(op.getKey()).getHalo();
    int64_t stretches = stretchesOfPart(shd::dealtParts(op, op.getKey()));
    return indexed.positionsWithHalo(
        file.sizes.number("halo", shard.getHalo() / stretches,
                          smallHalo / stretches),
        op.getKey());
  }
  spmd::ShardAttr shard = travellingKeys(op, indexed);
  if (!shard)
    return indexed.positions(op.getKey());
  if (shard.getEachIteration()) {
    std::string step =
        array(cast<shd::RepeatOp>(op->getParentOp()).getIteration());
    if (shard.getStep() > 0)
      step = cat(step, " + ", std::to_string(shard.getStep()));
    return indexed.positionsAt(shard.getBack() ? cat("-(", step, ")") : step,
                               op.getKey());
  }
  auto small = cast<shd::ShardingRuleOpInterface>(file.small.lookup(op));
  int64_t smallStep = IndexedOp(file, small).shardOf(op.getKey()).getStep();
  std::string step =
      file.sizes.number("ring_offset", shard.getStep(), smallStep);
  return indexed.positionsAt(shard.getBack() ? cat("-", step) : step,
                             op.getKey());
}

std::string FunctionPrinter::scores(shd::AttentionOpInterface op) {
  if (auto known = scoresOf.find(op); known != scoresOf.end())
    return known->second;
  IndexedOp indexed(file,
                    cast<shd::ShardingRuleOpInterface>(op.getOperation()));
  Names indices = scoreIndices(op, indexed);
  std::string name = names.make("scores");
  line(cat(name, " = ", file.helper("einsum"), "(",
           subscripts(indexed.operand(shd::AttentionOp::kQueryOperand),
                      indexed.operand(shd::AttentionOp::kKeyOperand), indices),
           ", ", array(op.getQ()), ", ", array(op.getK()), ") * ",
           scaleOf(op, indexed)));
  if (op.getSoftcap()) {
    std::string cap = number(*op.getSoftcap());
    line(cat(name, " = ", cap, " * jnp.tanh(", name, " / ", cap, ")"));
  }
  if (op.getBias())
    line(cat(name, " = ", name, " + ",
             aligned(inFloat(op.getBias()),
                     indexed.operand(op.getBiasOperand()), indices)));
  if (op.getCausal() || op.getWindow()) {
    std::string query =
        op.getAt() ? aligned(array(op.getAt()),
                             indexed.operand(op.getAtOperand()), indices)
                   : aligned(indexed.positions(*op.getQuery()),
                             {*op.getQuery()}, indices);
    std::string key = names.make("keys"), seen = names.make("seen");
    line(cat(key, " = ",
             op.getKeyAt()
                 ? aligned(array(op.getKeyAt()),
                           indexed.operand(op.getKeyAtOperand()), indices)
                 : keyPositions(op)));
    std::string mask = cat(key, " <= ", query);
    // An empty slot, or a row before the first.
    if (op.getKeyAt() || keysWithHalo(op, indexed))
      mask = cat("(", mask, ") & (", key, " >= 0)");
    if (op.getWindow()) {
      auto small = cast<shd::AttentionOpInterface>(file.small.lookup(op));
      mask =
          cat("(", mask, ") & (", key, " > ", query, " - ",
              file.sizes.number("window", *op.getWindow(), *small.getWindow()),
              ")");
    }
    line(cat(seen, " = ", mask));
    line(cat(name, " = jnp.where(", seen, ", ", name, ", -jnp.inf)"));
  }
  return scoresOf[op] = name;
}

/// The sinks, so that they broadcast to the queries.
std::string FunctionPrinter::sinkOf(shd::AttentionOp op,
                                    const IndexedOp &indexed) {
  return aligned(inFloat(op.getSink()), indexed.operand(op.getSinkOperand()),
                 without(scoreIndices(op, indexed), {op.getKey()}));
}

void FunctionPrinter::compute(shd::AttentionOp op) {
  IndexedOp indexed(file, op);
  Names indices = scoreIndices(op, indexed);
  std::string name = scores(op);
  SmallVector<Value> stats = statsOf(op);
  std::string weights = names.make("weights"), sum, logSumExp;
  if (!stats.empty())
    sum = array(stats[1]);
  if (stats.empty())
    logSumExp = cat("jax.nn.logsumexp(", name, ", axis=-1)");
  if (op.getSink()) {
    std::string total = names.make(stats.empty() ? "logs" : "sums");
    std::string sink = sinkOf(op, indexed);
    line(cat(total, " = ",
             stats.empty()
                 ? cat("jnp.logaddexp(", logSumExp, ", ", sink, ")")
                 : cat(sum, " + jnp.exp(", sink, " - ", array(stats[0]), ")")));
    (stats.empty() ? logSumExp : sum) = total;
  }
  if (travellingKeys(op, indexed)) {
    // All keys of a step may be masked: then there are no weights.
    std::string logs = names.make("logsumexp");
    line(cat(logs, " = ", logSumExp));
    logSumExp = logs;
    line(cat(weights, " = jnp.exp(", name, " - jnp.maximum(", logSumExp,
             ", -1e30)[..., None])"));
  } else if (!stats.empty())
    line(cat(weights, " = jnp.exp(", name, " - ", array(stats[0]),
             "[..., None]) / ", sum, "[..., None]"));
  else if (op.getSink())
    line(cat(weights, " = jnp.exp(", name, " - ", logSumExp, "[..., None])"));
  else
    line(cat(weights, " = jax.nn.softmax(", name, ", axis=-1)"));
  // The head index of the values is no index of the scores.
  defineAs(
      op.getResult(),
      cat(file.helper("einsum"), "(",
          subscripts(indices, indexed.operand(shd::AttentionOp::kValueOperand),
                     indexed.result()),
          ", ", weights, ", ", array(op.getV()), ")"),
      accumulator(elementOf(op.getV())));
  if (!op.getLogsumexp())
    return;
  if (!stats.empty())
    logSumExp = cat("jnp.log(", sum, ") + ", array(stats[0]));
  define(op.getLogsumexp(),
         transposed(logSumExp, without(indices, {op.getKey()}),
                    indexed.result(1)));
}

/// The sum over the indices that `to` lacks, in the order of `to`.
static std::string summedTo(const std::string &expression, const Names &from,
                            const Names &to) {
  Names summed = without(from, to);
  std::string sum = summed.empty() ? expression
                                   : cat("jnp.sum(", expression,
                                         ", axis=", axesOf(from, summed), ")");
  return transposed(sum, without(from, summed), to);
}

/// With weights p: v' = p g; p' = g . v; the scores' gradient p (p' - g . o).
void FunctionPrinter::compute(shd::AttentionGradOp op) {
  IndexedOp indexed(file, op);
  Names indices = scoreIndices(op, indexed);
  Names queries = without(indices, {op.getKey()});
  auto operand = [&](unsigned number) { return indexed.operand(number); };
  auto product = [&](const Names &a, const std::string &x, const Names &b,
                     const std::string &y, const Names &result) {
    return cat(file.helper("einsum"), "(", subscripts(a, b, result), ", ", x,
               ", ", y, ")");
  };
  Names q = operand(op.kQueryOperand), k = operand(op.kKeyOperand);
  Names v = operand(op.kValueOperand), output = operand(op.kOutputOperand);
  Names biasIndices;
  if (op.getBias())
    biasIndices = operand(op.getBiasOperand());
  std::string name = scores(op), gradient = array(op.getGradient());
  std::string weights = names.make("weights"), mean = names.make("mean");
  std::string slopes = names.make("slopes");
  line(cat(
      weights, " = jnp.exp(", name, " - ",
      aligned(array(op.getLogsumexp()), operand(op.kLogSumExpOperand), indices),
      ")"));
  line(cat(mean, " = ",
           product(output, gradient, output, array(op.getOutput()), queries)));
  line(cat(slopes, " = ",
           product(output, gradient, v, array(op.getV()), indices)));
  line(
      cat(slopes, " = ", weights, " * (", slopes, " - ", mean, "[..., None])"));
  if (op.getDbias())
    defineAs(op.getDbias(), summedTo(slopes, indices, biasIndices),
             Float32Type::get(op.getContext()));
  if (op.getSoftcap()) { // masked scores are minus infinity
    std::string capped =
        op.getBias()
            ? cat("(", name, " - ",
                  aligned(inFloat(op.getBias()), biasIndices, indices), ")")
            : name;
    line(cat(slopes, " = jnp.where(", name, " == -jnp.inf, 0, ", slopes,
             " * (1 - jnp.square(", capped, " / ", number(*op.getSoftcap()),
             ")))"));
  }
  line(cat(slopes, " = ", slopes, " * ", scaleOf(op, indexed)));
  Type made = Float32Type::get(op.getContext());
  defineAs(op.getDq(), product(indices, slopes, k, array(op.getK()), q), made);
  defineAs(op.getDk(), product(indices, slopes, q, array(op.getQ()), k), made);
  defineAs(op.getDv(), product(indices, weights, output, gradient, v), made);
}

void FunctionPrinter::compute(shd::RopeOp op) {
  IndexedOp indexed(file, op);
  Names input = indexed.operand(0), others = without(input, {op.getHead()});
  std::string positions =
      op.getAt() ? aligned(array(op.getAt()), indexed.operand(1), others)
                 : aligned(indexed.positions(*op.getPositions()),
                           {*op.getPositions()}, others);
  if (op.getInverse())
    positions = cat("-", atom(positions), ".astype(f32)");
  std::string rotated =
      cat(file.helper("rope"), "(", array(op.getInput()), ", ", positions, ", ",
          axisOf(input, op.getHead()), ", ", number(op.getTheta()), ")");
  Type type = elementOf(op.getInput());
  defineAs(op.getResult(), transposed(rotated, input, indexed.result()),
           accumulator(type));
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

Value jax::rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto elementwise = dyn_cast<shd::ElementwiseOp>(op);
    bool copies = isa<shd::ReshardOp, shd::PartOp>(op) ||
                  spmd::isCollective(op) ||
                  (elementwise && elementwise.getFunction() == Function::Copy);
    if (!copies)
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool FunctionPrinter::isInRange(const IndexedOp &indexed, Value value,
                                StringRef index) const {
  value = rootOf(value);
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return isa<spmd::ParameterOp, shd::DeclareOp>(value.getDefiningOp());
  auto repeat = cast<shd::RepeatOp>(argument.getOwner()->getParentOp());
  auto small = cast<shd::RepeatOp>(file.small.lookup(repeat));
  auto [extent, smallExtent] = indexed.extents(index);
  return argument.getArgNumber() == 0 &&
         shd::iterationsOfAll(repeat) <= extent &&
         shd::iterationsOfAll(small) <= smallExtent;
}

std::string FunctionPrinter::programPosition(const IndexedOp &indexed,
                                             Value value, StringRef index) {
  if (auto constant = value.getDefiningOp<shd::ConstantOp>()) {
    auto [extent, smallExtent] = indexed.extents(index);
    auto number = cast<DenseElementsAttr>(constant.getValue())
                      .getSplatValue<llvm::APInt>();
    bool inside = number.ult(uint64_t(std::min(extent, smallExtent)));
    std::string text = literal(constant);
    return inside ? text : cat("(", text, " % ", indexed.whole(index), ")");
  }
  if (isInRange(indexed, value, index))
    return array(value);
  return cat("(", array(value), " % ", indexed.whole(index), ")");
}

std::string FunctionPrinter::position(const IndexedOp &indexed, Value value,
                                      StringRef index) {
  std::string text = programPosition(indexed, value, index);
  std::string order = indexed.order(index);
  return order.empty() ? text : cat("jnp.argsort(", order, ")[", text, "]");
}

void FunctionPrinter::compute(shd::GatherOp op) {
  IndexedOp indexed(file, op);
  Names table = indexed.operand(0), result = indexed.result();
  Names gathered;
  for (int64_t dim : op.getDims())
    gathered.push_back(table[dim]);
  Type type = elementOf(op.getTable());
  bool sharded = anySharded(indexed, gathered);
  bool shares = false;
  for (unsigned i = 0; i < gathered.size(); ++i)
    for (StringRef name : indexed.operand(i + 1))
      shares |= llvm::is_contained(table, name);
  std::string source = array(op.getTable());
  if (gathered.size() == 1 && !shares) {
    int64_t dim = op.getDims()[0];
    std::string at = position(indexed, op.getPositions()[0], gathered[0]);
    std::string rows =
        sharded ? cat(file.helper("take"), "(", source, ", ", at, ", ", dim,
                      ", ", indexed.start(gathered[0]), ")")
                : cat("jnp.take(", source, ", ", at, ", axis=", dim, ")");
    Names made(table.begin(), table.begin() + dim);
    made.append(indexed.operand(1));
    made.append(table.begin() + dim + 1, table.end());
    defineAs(op.getResult(), transposed(rows, made, result), type);
    return;
  }
  SmallVector<std::string> subscript;
  for (auto [dim, name] : llvm::enumerate(table)) {
    auto at = llvm::find(op.getDims(), int64_t(dim));
    if (at == op.getDims().end()) {
      subscript.push_back(
          aligned(cat("jnp.arange(", indexed.part(name), ")"), {name}, result));
      continue;
    }
    unsigned number = at - op.getDims().begin();
    std::string text = position(indexed, op.getPositions()[number], name);
    if (indexed.isSharded(name))
      text = cat("(", text, " - ", indexed.start(name), ")");
    subscript.push_back(aligned(text, indexed.operand(number + 1), result));
  }
  defineAs(op.getResult(),
           sharded ? cat(file.helper("lookup"), "(", source, ", ",
                         commas(subscript), ")")
                   : cat(source, "[", commas(subscript), "]"),
           type);
}

FunctionPrinter::Places FunctionPrinter::placesOf(const IndexedOp &indexed,
                                                  shd::PositionsOpInterface op,
                                                  const Names &written,
                                                  const Names &update) {
  Places places;
  ArrayRef<int64_t> dims = op.getDims();
  for (auto [dim, name] : llvm::enumerate(written)) {
    const int64_t *at = llvm::find(dims, int64_t(dim));
    if (at == dims.end()) {
      places.dims.push_back(
          aligned(cat("jnp.arange(", indexed.part(name), ")"), {name}, update));
      continue;
    }
    unsigned number = at - dims.begin();
    Names indices =
        indexed.operand(op.getPositions().getBeginOperandIndex() + number);
    for (StringRef index : indices)
      if (!llvm::is_contained(written, index) &&
          !llvm::is_contained(places.repeated, index))
        places.repeated.push_back(index);
    std::string text = position(indexed, op.getPositions()[number], name);
    if (indexed.isSharded(name)) {
      text = cat(file.helper("here"), "(", text, " - ", indexed.start(name),
                 ", ", indexed.part(name), ")");
      places.mode = ", mode=\"drop\"";
    }
    places.dims.push_back(aligned(text, indices, update));
  }
  places.subscript = commas(places.dims);
  return places;
}

/// Adds to zeros.
void FunctionPrinter::compute(shd::ScatterSumOp op) {
  IndexedOp indexed(file, op);
  Places places = placesOf(indexed, op, indexed.result(), indexed.operand(0));
  Type sum = accumulator(elementOf(op.getResult()));
  defineAs(op.getResult(),
           cat("jnp.zeros(", indexed.shape(indexed.result()), ", ",
               file.type(sum), ").at[", places.subscript, "].add(",
               convert(array(op.getUpdate()), elementOf(op.getUpdate()), sum),
               places.mode, ")"),
           sum);
}

void FunctionPrinter::compute(shd::ScatterOp op) {
  IndexedOp indexed(file, op);
  Names update = indexed.operand(1);
  Places places = placesOf(indexed, op, indexed.operand(0), update);
  const auto &[at, subscript, mode, repeated] = places;
  Type type = elementOf(op.getResult());
  std::string source = array(op.getDestination());
  if (op.getAccumulate()) {
    Type sum = accumulator(type);
    defineAs(op.getResult(),
             cat(atom(convert(source, type, sum)), ".at[", at, "].add(",
                 convert(array(op.getUpdate()), elementOf(op.getUpdate()), sum),
                 mode, ")"),
             sum);
    return;
  }
  std::string values =
      convert(array(op.getUpdate()), elementOf(op.getUpdate()), type);
  if (repeated.empty()) {
    define(op.getResult(),
           cat(source, ".at[", at, "].set(", values, mode, ")"));
    return;
  }
  // Several elements may name one position.
  SmallVector<std::string> extents;
  for (StringRef index : repeated)
    extents.push_back(indexed.part(index));
  std::string count = llvm::join(extents, " * ");
  std::string order = cat("jnp.arange(", count, ")");
  if (repeated.size() > 1)
    order = cat(order, ".reshape", pythonTuple(extents));
  define(op.getResult(),
         cat(file.helper("put_last"), "(", source, ", ", pythonTuple(subscript),
             ", ", values, ", ", aligned(order, repeated, update), ")"));
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

void FunctionPrinter::compute(shd::TopKOp op) {
  IndexedOp indexed(file, op);
  Names input = indexed.operand(0);
  define(op.getResult(),
         transposed(cat(file.helper("top_k"), "(", array(op.getInput()), ", ",
                        op.getK(), ", ", axisOf(input, op.getOver()), ")"),
                    input, indexed.result()));
}

/// The names of a tensor's indices: operands first, then the result.
static Names tensorIndices(const IndexedOp &indexed, Operation *op,
                           unsigned tensor) {
  return tensor < op->getNumOperands() ? indexed.operand(tensor)
                                       : indexed.result();
}

std::string FunctionPrinter::slotsOf(const IndexedOp &indexed,
                                     shd::ExpertsOpInterface op, Type type,
                                     Names &indices) {
  constexpr unsigned picks = 1;
  indices = indexed.operand(picks);
  Names slots = tensorIndices(indexed, op, op.getSlotsTensor());
  SmallVector<std::string> tokens;
  std::string parts;
  for (auto [axis, name] : llvm::enumerate(indices)) {
    bool isExpert = name == op.getExperts();
    if (!isExpert && llvm::is_contained(slots, name))
      continue; // a group
    if (!isExpert)
      tokens.push_back(std::to_string(axis));
    if (indexed.isSharded(name))
      parts += cat(", (", axis, ", ", indexed.start(name), ", ",
                   indexed.part(name), ")");
  }
  indices.push_back(op.getSlots());
  std::string text = cat(file.helper("slots_of"), "(", array(op.getPicks()),
                         ", ", pythonTuple(tokens), ", ",
                         indexed.positions(op.getSlots()), parts, ")");
  return cat(text, ".astype(", file.type(type), ")");
}

/// The product of the tensors that are read, over the slots that tokens have.
template <typename Op> void FunctionPrinter::computeExperts(Op op) {
  IndexedOp indexed(file, op);
  Type sum = accumulator(elementOf(op.getResult()));
  Names indices;
  std::string slots = names.make("slots");
  line(cat(slots, " = ", slotsOf(indexed, op, sum, indices)));
  auto operand = [&](unsigned number) {
    Value value = op->getOperand(number);
    return convert(array(value), elementOf(value), sum);
  };
  std::optional<unsigned> weights = op.getWeightsTensor();
  if (weights && *weights < op->getNumOperands())
    line(cat(slots, " = ", slots, " * ",
             aligned(operand(*weights), indexed.operand(*weights), indices)));
  unsigned result = op->getNumOperands();
  auto product = [&](unsigned number, const Names &made) {
    return cat(subscripts(indices, indexed.operand(number), made), ", ", slots,
               ", ", operand(number));
  };
  unsigned tokens = op.getTokensTensor(), slotted = op.getSlotsTensor();
  std::string text;
  if (tokens == result || slotted == result) {
    text = product(tokens == result ? slotted : tokens, indexed.result());
  } else {
    // First the product of both, then where they meet.
    Names meet = indices;
    std::string pairs = names.make("pairs");
    line(
        cat(pairs, " = ", file.helper("einsum"), "(",
            subscripts(indexed.operand(tokens), indexed.operand(slotted), meet),
            ", ", operand(tokens), ", ", operand(slotted), ")"));
    text = cat(subscripts(indices, meet, indexed.result()), ", ", slots, ", ",
               pairs);
  }
  std::string function =
      sum.isF32() ? file.helper("einsum").str() : std::string("jnp.einsum");
  defineAs(op.getResult(), cat(function, "(", text, ")"), sum);
}

void FunctionPrinter::compute(shd::DispatchOp op) { computeExperts(op); }

void FunctionPrinter::compute(shd::CombineOp op) { computeExperts(op); }

void FunctionPrinter::compute(shd::CombineGradOp op) { computeExperts(op); }

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

void FunctionPrinter::compute(shd::SplitOp op) {
  IndexedOp indexed(file, op);
  define(op.getResult(), cat(array(op.getInput()), ".reshape",
                             indexed.shape(indexed.result())));
}

void FunctionPrinter::compute(shd::MergeOp op) {
  IndexedOp indexed(file, op);
  SmallVector<std::string> shape;
  for (StringRef index : indexed.result())
    shape.push_back(index == op.getWhole() ? "-1" : indexed.part(index));
  define(op.getResult(),
         cat(array(op.getInput()), ".reshape", pythonTuple(shape)));
}

void FunctionPrinter::compute(shd::SliceOp op) {
  IndexedOp indexed(file, op);
  auto small = cast<shd::SliceOp>(file.small.lookup(op));
  auto bound = [&](unsigned end, StringRef name) {
    return file.sizes.number(cat(op.getPart(), "_", name), op.getRange()[end],
                             small.getRange()[end]);
  };
  SmallVector<std::string> subscript(axisOf(indexed.operand(0), op.getWhole()),
                                     ":");
  subscript.push_back(cat(bound(0, "begin"), ":", bound(1, "end")));
  define(op.getResult(),
         cat(array(op.getInput()), "[", commas(subscript), "]"));
}

void FunctionPrinter::compute(shd::ConcatOp op) {
  IndexedOp indexed(file, op);
  Type type = elementOf(op.getResult());
  SmallVector<std::string> inputs;
  for (auto [number, input] : llvm::enumerate(op.getInputs())) {
    Names from = indexed.operand(number);
    Names target = indexed.result();
    auto part = cast<StringAttr>(op.getParts()[number]).getValue();
    llvm::replace(target, StringRef(op.getWhole()), part);
    inputs.push_back(transposed(convert(array(input), elementOf(input), type),
                                from, target));
  }
  define(op.getResult(), cat("jnp.concatenate(", pythonTuple(inputs), ", axis=",
                             axisOf(indexed.result(), op.getWhole()), ")"));
}

/// An array in the type in which optimizers compute.
std::string FunctionPrinter::inF32(Value value) {
  Type type = Float32Type::get(value.getContext());
  return cat(array(value), ".astype(", file.type(type), ")");
}

/// Defines a result in its own type.
void FunctionPrinter::store(Value value, const std::string &expression) {
  define(value, cat(expression, ".astype(", file.type(elementOf(value)), ")"));
}

void FunctionPrinter::compute(shd::AdamWOp op) {
  std::string g = names.make("g"), p = names.make("p"), m = names.make("m"),
              v = names.make("v"), direction = names.make("direction");
  line(cat(g, " = ", inF32(op.getGradient()),
           op.getScale() ? cat(" * ", array(op.getScale())) : ""));
  line(cat(p, " = ", inF32(op.getWeight())));
  std::string beta1 = number(op.getBeta1()), beta2 = number(op.getBeta2());
  line(cat(m, " = ", beta1, " * ", inF32(op.getM()), " + (1 - ", beta1, ") * ",
           g));
  line(cat(v, " = ", beta2, " * ", inF32(op.getV()), " + (1 - ", beta2, ") * ",
           g, " * ", g));
  line(cat(direction, " = ", m, " / ", array(op.getCorrection1()),
           " / (jnp.sqrt(", v, " / ", array(op.getCorrection2()), ") + ",
           number(op.getEps()), ")"));
  line(cat(p, " = ", p, " - ", number(op.getLr()), " * (", direction, " + ",
           number(op.getDecay()), " * ", p, ")"));
  store(op.getUpdated(), p);
  store(op.getNewM(), m);
  store(op.getNewV(), v);
  if (Value rounded = op.getRounded())
    store(rounded, p);
}

void FunctionPrinter::compute(shd::SgdOp op) {
  std::string m = names.make("m"), p = names.make("p");
  line(cat(p, " = ", inF32(op.getWeight())));
  std::string sum = inF32(op.getGradient());
  if (Value scale = op.getScale())
    sum += cat(" * ", array(scale));
  if (op.getDecay().convertToDouble() != 0)
    sum += cat(" + ", number(op.getDecay()), " * ", p);
  if (Value momentum = op.getMomentum())
    sum += cat(" + ", number(op.getBeta()), " * ", inF32(momentum));
  line(cat(m, " = ", sum));
  line(cat(p, " = ", p, " - ", number(op.getLr()), " * ", m));
  store(op.getUpdated(), p);
  if (Value momentum = op.getNewMomentum())
    store(momentum, m);
  if (Value rounded = op.getRounded())
    store(rounded, p);
}

void FunctionPrinter::compute(shd::IotaOp op) {
  IndexedOp indexed(file, op);
  define(op.getResult(), cat(indexed.positions(indexed.result()[0]), ".astype(",
                             file.type(elementOf(op.getResult())), ")"));
}

//===----------------------------------------------------------------------===//
// Statistics
//===----------------------------------------------------------------------===//

/// The operation that takes a statistic, and its number there.
static std::pair<shd::ShardingRuleOpInterface, unsigned>
userOf(shd::StatisticOp statistic) {
  Value value = statistic;
  while (true)
    for (Operation *user : value.getUsers()) {
      if (spmd::isCollective(user)) {
        value = onlyResult(user);
        break;
      }
      auto compute = dyn_cast<shd::ShardingRuleOpInterface>(user);
      if (!compute)
        continue;
      auto stats = llvm::to_vector(compute.getStats());
      auto *at = llvm::find(stats, value);
      if (at != stats.end())
        return {compute, unsigned(at - stats.begin())};
    }
}

/// This device's part of statistic `kind` over `axes` of `x`; `stats` are those
/// before it, broadcast to `x`.
static std::string sumOrMax(StringRef kind, const std::string &x,
                            const std::string &axes,
                            ArrayRef<std::string> stats) {
  if (kind == "max")
    return cat("jnp.max(", x, ", axis=", axes, ")");
  if (kind == "sum_exp")
    return cat("jnp.sum(jnp.exp(", x, " - ", stats[0], "), axis=", axes, ")");
  if (kind == "sum_square")
    return cat("jnp.sum(jnp.square(", x, "), axis=", axes, ")");
  return cat("jnp.sum(", x, ", axis=", axes, ")");
}

LogicalResult FunctionPrinter::printStatistic(shd::StatisticOp statistic) {
  auto [user, number] = userOf(statistic);
  IndexedOp indexed(file, user);
  StringRef kind = statistic.getKind();
  auto defineStatistic = [&](const std::string &text) {
    std::string name = names.make(cat("local_", kind));
    expressions[statistic] = name;
    line(cat(name, " = ", text));
    return success();
  };
  unsigned numOperands = user->getNumOperands() - user.getStats().size();
  SmallVector<Value> before(statistic.getInputs().drop_front(numOperands));
  Names input = indexed.operand(0);
  auto wide = [&](const Names &over) {
    SmallVector<std::string> stats;
    for (Value value : before)
      stats.push_back(aligned(array(value), without(input, over), input));
    return stats;
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(user)
      .Case([&](shd::NormalizeOp op) {
        Names over = namesOf(op.getOver());
        return defineStatistic(sumOrMax(kind, inFloat(op.getInputs()[0]),
                                        axesOf(input, over), wide(over)));
      })
      .Case([&](shd::CrossEntropyOp op) {
        Names over = {op.getClasses()};
        std::string axis = axesOf(input, over);
        if (kind != "picked")
          return defineStatistic(
              sumOrMax(kind, inFloat(op.getLogits()), axis, wide(over)));
        std::string labels =
            transposed(position(indexed, op.getLabels(), op.getClasses()),
                       indexed.operand(1), without(input, over));
        std::string begin = indexed.isSharded(op.getClasses())
                                ? cat(", ", indexed.start(op.getClasses()))
                                : std::string();
        return defineStatistic(cat(file.helper("pick"), "(",
                                   inFloat(op.getLogits()), ", ", labels, ", ",
                                   axis, begin, ")"));
      })
      .Case([&](shd::AttentionOp op) {
        std::string name = scores(op);
        SmallVector<std::string> stats;
        for (Value value : before)
          stats.push_back(cat(array(value), "[..., None]"));
        std::string text = sumOrMax(kind, name, "-1", stats);
        if (op.getSink() && kind == "max") // sums leave the sink out
          text = cat("jnp.maximum(", text, ", ", sinkOf(op, indexed), ")");
        return defineStatistic(text);
      })
      .Case([&](shd::ReduceOp op) {
        Names reduced = without(input, indexed.result());
        std::string axes = axesOf(input, reduced);
        if (kind != "index")
          return defineStatistic(
              cat(op.getKind() == shd::Reduction::Min ? "jnp.min(" : "jnp.max(",
                  array(op.getInput()), ", axis=", axes, ")"));
        // The first position, in row-major order, at which the maximum stands.
        std::string at;
        for (StringRef index : reduced) {
          std::string position =
              aligned(indexed.positions(index), {index}, input);
          at = at.empty() ? position
                          : cat(atom(at), " * ", indexed.whole(index), " + ",
                                position);
        }
        return defineStatistic(cat("jnp.min(jnp.where(", array(op.getInput()),
                                   " == ", wide(reduced)[0], ", ", at,
                                   ", jnp.iinfo(jnp.int32).max), axis=", axes,
                                   ").astype(", file.type(elementOf(statistic)),
                                   ")"));
      })
      .Default([&](Operation *) -> LogicalResult {
        return statistic.emitError()
               << "--emit-jax does not support statistic '" << kind << "'";
      });
}
