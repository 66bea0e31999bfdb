//===- Function.cpp - Statements, names and repeats -----------------------===//

#include "Function.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;

//===----------------------------------------------------------------------===//
// Parameters and indices
//===----------------------------------------------------------------------===//

using Names = IndexedOp::Names;

static Names namesOf(ArrayAttr list) {
  return llvm::to_vector<4>(list.getAsValueRange<StringAttr>());
}

/// Puts those that the program updates in the order in which JAX has the
/// results of a dict, by name: donated arguments then take the place of their
/// results.
static void sortUpdated(const llvm::StringSet<> &updated,
                        MutableArrayRef<Parameter> parameters) {
  SmallVector<Parameter> sorted;
  auto isUpdated = [&](const Parameter &parameter) {
    return updated.contains(parameter.op->getAttrOfType<StringAttr>("sym"));
  };
  llvm::copy_if(parameters, std::back_inserter(sorted), isUpdated);
  llvm::sort(sorted, [](const Parameter &a, const Parameter &b) {
    return a.name < b.name;
  });
  auto *next = sorted.begin();
  for (Parameter &parameter : parameters)
    if (isUpdated(parameter))
      parameter = std::move(*next++);
}

SmallVector<Parameter> jax::parametersOf(const PythonFile &file, Block &block) {
  llvm::StringSet<> updated;
  SmallVector<Parameter> parameters;
  auto add = [&](auto op, Type global) {
    if (shd::isBuffer(op.getKind()))
      return;
    Parameter parameter{op, op.getKind(), file.parameters.lookup(op.getSym()),
                        namesOf(op.getIndices()),
                        cast<RankedTensorType>(global)};
    parameters.push_back(std::move(parameter));
  };
  block.walk([&](Operation *op) {
    if (auto parameter = dyn_cast<spmd::ParameterOp>(op))
      add(parameter, parameter.getGlobal());
    else if (auto declare = dyn_cast<shd::DeclareOp>(op))
      add(declare, declare.getType());
    else if (auto update = dyn_cast<spmd::UpdateOp>(op))
      updated.insert(update.getSym());
    else if (auto update = dyn_cast<shd::UpdateOp>(op))
      updated.insert(update.getSym());
  });
  sortUpdated(updated, parameters);
  return parameters;
}

spmd::ShardAttr IndexedOp::shardOf(StringRef index) const {
  if (auto shards = op->getAttrOfType<ArrayAttr>(spmd::kShards))
    for (auto shard : shards.getAsRange<spmd::ShardAttr>())
      if (shard.getName() == index)
        return shard;
  return {};
}

/// The extent of an index in the tensors of an operation.
static int64_t extentOf(shd::ShardingRuleOpInterface op, StringRef index) {
  shd::IndexingAttr indexing = op.getIndexing();
  auto find = [&](const Names &names, Value value) -> std::optional<int64_t> {
    auto *at = llvm::find(names, index);
    if (at == names.end())
      return std::nullopt;
    return cast<RankedTensorType>(value.getType())
        .getDimSize(at - names.begin());
  };
  for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
    if (auto extent = find(indexing.getOperandIndices(i), op->getOperand(i)))
      return *extent;
  for (OpResult result : op->getResults())
    if (auto extent =
            find(indexing.getResultIndices(result.getResultNumber()), result))
      return *extent;
  llvm_unreachable("an index of the operation");
}

std::pair<int64_t, int64_t> IndexedOp::extents(StringRef index) const {
  auto small = cast<shd::ShardingRuleOpInterface>(file.small.lookup(op));
  auto wholeOf = [&](shd::ShardingRuleOpInterface form) {
    if (spmd::ShardAttr shard = IndexedOp(file, form).shardOf(index))
      return shard.getExtent();
    return extentOf(form, index);
  };
  return {wholeOf(op), wholeOf(small)};
}

std::string jax::zigzag(PythonFile &file, Operation *op, StringRef index,
                        StringRef key) {
  int64_t parts = shd::dealtParts(op, index);
  if (parts == 1)
    return "";
  int64_t smallParts = shd::dealtParts(file.small.lookup(op), index);
  return cat(file.helper("zigzag"), "(", quoted(key), ", ",
             file.sizes.number("parts", parts, smallParts), ")");
}

std::string IndexedOp::key(StringRef index) const {
  auto [full, small] = extents(index);
  return file.sizes.key(index, full, small);
}

std::string IndexedOp::arguments(StringRef index) const {
  std::string text = quoted(key(index));
  if (spmd::ShardAttr shard = shardOf(index))
    for (StringAttr axis : shard.getAxes())
      text += cat(", ", quoted(axis));
  return text;
}

std::string IndexedOp::whole(StringRef index) const {
  return cat("size[", quoted(key(index)), "]");
}

std::string IndexedOp::part(StringRef index) const {
  if (!isSharded(index))
    return whole(index);
  return cat(file.helper("part"), "(", arguments(index), ")");
}

std::string IndexedOp::start(StringRef index) const {
  return cat(file.helper("start"), "(", arguments(index), ")");
}

std::string IndexedOp::order(StringRef index) const {
  return zigzag(file, op, index, key(index));
}

std::string IndexedOp::positions(StringRef index) const {
  std::string order = this->order(index);
  if (!isSharded(index))
    return order.empty() ? cat("jnp.arange(", whole(index), ")") : order;
  std::string here = cat(file.helper("positions"), "(", arguments(index), ")");
  return order.empty() ? here : cat(order, "[", here, "]");
}

std::string IndexedOp::positionsAt(const std::string &step,
                                   StringRef index) const {
  std::string there = cat(file.helper("ring_positions"), "(", step, ", ",
                          arguments(index), ")");
  std::string order = this->order(index);
  return order.empty() ? there : cat(order, "[", there, "]");
}

std::string IndexedOp::positionsWithHalo(const std::string &rows,
                                         StringRef index) const {
  std::string order = this->order(index);
  if (order.empty())
    return cat(file.helper("halo_positions"), "(", rows, ", ", arguments(index),
               ")");
  return cat(file.helper("dealt_halo_positions"), "(", rows, ", ", order, ", ",
             arguments(index), ")");
}

std::string IndexedOp::shape(ArrayRef<StringRef> indices) const {
  return pythonTuple(llvm::map_to_vector(
      indices, [&](StringRef index) { return part(index); }));
}

std::string jax::transposed(const std::string &expression,
                            ArrayRef<StringRef> from, ArrayRef<StringRef> to) {
  SmallVector<std::string> order;
  bool same = true;
  for (StringRef index : to) {
    auto *at = llvm::find(from, index);
    if (at == from.end())
      continue;
    same &= size_t(at - from.begin()) == order.size();
    order.push_back(std::to_string(at - from.begin()));
  }
  if (same)
    return expression;
  return cat(atom(expression), ".transpose(", commas(order), ")");
}

std::string jax::aligned(const std::string &expression,
                         ArrayRef<StringRef> from, ArrayRef<StringRef> to) {
  std::string text = transposed(expression, from, to);
  SmallVector<std::string> subscripts;
  bool inserts = false;
  for (StringRef index : to) {
    bool has = llvm::is_contained(from, index);
    // NumPy broadcasts along missing first dimensions.
    if (!has && subscripts.empty())
      continue;
    inserts |= !has;
    subscripts.push_back(has ? ":" : "None");
  }
  if (!inserts)
    return text;
  while (subscripts.back() == ":")
    subscripts.pop_back();
  return cat(atom(text), "[", commas(subscripts), "]");
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void FunctionPrinter::line(const std::string &text) {
  os.indent(4 * indent) << text << "\n";
}

std::string jax::wantedName(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto moved = op->getAttrOfType<StringAttr>(shd::kOperand))
    return moved.str();
  if (StringRef name = shd::getResultName(value); !name.empty())
    return name.str();
  return op->getName().stripDialect().str();
}

/// `x.2`, the second value of x, is x to people.
static StringRef withoutCount(StringRef name) {
  auto [base, count] = name.rsplit('.');
  unsigned number = 0;
  return count.getAsInteger(10, number) ? name : base;
}

/// `silu`, `softmax`, `sum`, or the name of the operation.
static std::string functionOf(Operation *op) {
  auto computed = dyn_cast<shd::ShardingRuleOpInterface>(op);
  return (computed ? computed.getFunctionName() : op->getName().stripDialect())
      .str();
}

void FunctionPrinter::define(Value value, const std::string &expression,
                             StringRef suffix) {
  Operation *op = value.getDefiningOp();
  std::string wanted = cat(withoutCount(wantedName(value)), suffix);
  if (op->hasAttr(shd::kTemporary) && suffix.empty())
    wanted = cat(wanted, "_", functionOf(op));
  std::string name = names.make(wanted);
  expressions[value] = name;
  line(cat(name, " = ", expression));
}

std::string FunctionPrinter::array(Value value) {
  auto known = expressions.find(value);
  if (known != expressions.end())
    return known->second;
  if (auto constant = value.getDefiningOp<shd::ConstantOp>())
    return cat("jnp.array(", scalar(constant), ", ",
               file.type(constant.getType().getElementType()), ")");
  return expressions.at(value);
}

/// The small form has other extents.
std::string FunctionPrinter::scalar(shd::ConstantOp op) {
  auto small = cast<shd::ConstantOp>(file.small.lookup(op));
  if (op->hasAttr(shd::kExtent)) {
    auto extentOf = [](shd::ConstantOp form) {
      return form.getValue().getValues<IntegerAttr>()[0].getInt();
    };
    return file.sizes.number("extent", extentOf(op), extentOf(small));
  }
  auto extentsOf = [](shd::ConstantOp form) {
    return form->getAttrOfType<DenseI64ArrayAttr>(shd::kInverseOf);
  };
  if (!extentsOf(op) || extentsOf(op).empty())
    return literal(op);
  SmallVector<std::string> factors;
  for (auto [full, smallExtent] : llvm::zip_equal(
           extentsOf(op).asArrayRef(), extentsOf(small).asArrayRef()))
    factors.push_back(file.sizes.number("extent", full, smallExtent));
  return cat("(1 / ", atom(llvm::join(factors, " * ")), ")");
}

/// Partial sums leave one by one, in front of the tensor's dimensions.
std::string FunctionPrinter::outputValue(Operation *output) {
  std::string value = array(output->getOperand(0));
  auto device = dyn_cast<spmd::OutputOp>(output);
  if (device && shd::explicitLayout(file.mesh, device.getGlobal()).partial)
    value = cat(atom(value), "[None]");
  return value;
}

static Type globalTypeOf(shd::DeclareOp op) { return op.getType(); }
static Type globalTypeOf(spmd::ParameterOp op) { return op.getGlobal(); }

bool jax::isOfBuffer(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([](shd::UpdateOp update) {
        return update.getDeclaration().isBuffer();
      })
      .Case([](spmd::UpdateOp update) {
        return shd::isBuffer(update.getParameter().getKind());
      })
      .Default(false);
}

void FunctionPrinter::printBuffer(Operation *op, RankedTensorType global,
                                  ArrayAttr indices) {
  Operation *smallForm = file.small.lookup(op);
  auto parameter = dyn_cast<spmd::ParameterOp>(smallForm);
  auto small = cast<RankedTensorType>(
      parameter ? parameter.getGlobal()
                : cast<shd::DeclareOp>(smallForm).getType());
  Layout layout = shd::explicitLayout(file.mesh, global);
  SmallVector<std::string> extents;
  for (auto [index, full, smallExtent, axes] :
       llvm::zip_equal(indices.getAsValueRange<StringAttr>(), global.getShape(),
                       small.getShape(), layout.dims)) {
    std::string text = quoted(file.sizes.key(index, full, smallExtent));
    if (axes.empty()) {
      extents.push_back(cat("size[", text, "]"));
      continue;
    }
    for (AxisIndex axis : axes)
      text += cat(", ", quoted(file.mesh.axes[axis].name));
    extents.push_back(cat(file.helper("part"), "(", text, ")"));
  }
  if (isOnHost(onlyResult(op)) && !shd::isReadWhole(onlyResult(op)))
    addUnits(onlyResult(op), extents);
  std::string name =
      file.parameters.lookup(op->getAttrOfType<StringAttr>("sym").getValue());
  expressions[onlyResult(op)] = name;
  std::string zeros = cat("jnp.zeros(", pythonTuple(extents), ", ",
                          file.type(global.getElementType()), ")");
  if (isOnHost(onlyResult(op)))
    zeros = cat(file.helper("to_host"), "(", zeros, ")");
  line(cat(name, " = ", zeros));
}

/// XLA merges zeros of one shape in the memory of the host into one buffer, and
/// copies that for each stack but the last: further dimensions of extent 1 tell
/// them apart. What is fetched loses them.
void FunctionPrinter::addUnits(Value stack, SmallVector<std::string> &extents) {
  unsigned &before = stacksOnHost[stack.getType()];
  extents.append(before, "1");
  units[stack] = before++;
}

bool FunctionPrinter::isOnHost(Value value) const {
  return isOfDevice && shd::isOnHost(value);
}

LogicalResult
FunctionPrinter::printReadingHost(Operation *op,
                                  llvm::function_ref<LogicalResult()> print) {
  llvm::MapVector<Value, std::string> known;
  for (Value value : op->getOperands()) {
    if (!isOnHost(value) || !shd::isReadOnHost(value) || known.contains(value))
      continue;
    std::string &expression = expressions[value];
    known[value] = expression;
    expression = cat(file.helper("from_host"), "(", expression, ")");
  }
  LogicalResult printed = print();
  for (const auto &[value, expression] : known)
    expressions[value] = expression;
  return printed;
}

std::string FunctionPrinter::partOf(Value stack, const std::string &name,
                                    const std::string &numbers) {
  if (isOnHost(stack))
    return cat(file.helper("read_part"), "(", name, ", ", numbers, ")");
  return cat(atom(name), "[", numbers, "]");
}

std::string FunctionPrinter::withPart(Value stack, const std::string &name,
                                      const std::string &numbers,
                                      const std::string &part) {
  if (isOnHost(stack))
    return cat(file.helper("write_part"), "(", name, ", ", part, ", ", numbers,
               ")");
  return cat(name, ".at[", numbers, "].set(", part, ")");
}

/// A buffer changes from here on; other tensors have the value when the step
/// ends.
template <typename UpdateOp>
void FunctionPrinter::printUpdate(UpdateOp update) {
  std::string value = array(update.getValue());
  std::string name = file.parameters.lookup(update.getSym());
  if (!isOfBuffer(update)) {
    if (isOnHost(update.getState()))
      value = cat(file.helper("to_host"), "(", value, ")");
    updates.push_back({name, value});
    return;
  }
  std::string &buffer = expressions[update.getState()];
  if (!update.getAt().empty()) {
    assert(!(stages && units.lookup(update.getState())) &&
           "values of stages stay on the device");
    std::string at = partNumbers(update.getState(), update.getAt(),
                                 /*known=*/0, update->hasAttr(shd::kAhead));
    if (stages && !stages->exists.empty())
      value = cat("jnp.where(", stages->exists, ", ", value, ", ", buffer, "[",
                  at, "])");
    value = withPart(update.getState(), buffer, at, value);
  }
  buffer = names.make(name);
  line(cat(buffer, " = ", value));
}

LogicalResult FunctionPrinter::printOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<spmd::ParameterOp, shd::DeclareOp>([&](auto parameter) {
        if (shd::isBuffer(parameter.getKind()))
          printBuffer(op, cast<RankedTensorType>(globalTypeOf(parameter)),
                      parameter.getIndices());
        else
          expressions[parameter] = file.parameters.lookup(parameter.getSym());
        return success();
      })
      .Case<spmd::OutputOp, shd::OutputOp>([&](auto output) {
        outputs.push_back({output.getSym().str(), outputValue(output)});
        return success();
      })
      .Case<spmd::UpdateOp, shd::UpdateOp>([&](auto update) {
        printUpdate(update);
        return success();
      })
      .Case([&](shd::PartOp part) {
        printPart(part);
        return success();
      })
      .Case([&](shd::RepeatOp repeat) { return printRepeat(repeat); })
      .Case<shd::ConstantOp, shd::YieldOp>([](auto) { return success(); })
      .Case(
          [&](shd::StatisticOp statistic) { return printStatistic(statistic); })
      .Case<spmd::RingPositionOp, spmd::RingShiftOp, spmd::ChunkOp,
            spmd::PlaceOp>([&](auto ofRing) {
        ring(ofRing);
        return success();
      })
      .Case([&](shd::ShardingRuleOpInterface compute) {
        return printReadingHost(op, [&] { return printCompute(compute); });
      })
      .Default([&](Operation *other) -> LogicalResult {
        if (spmd::isCollective(other))
          return printReadingHost(other,
                                  [&] { return printCollective(other); });
        return other->emitError()
               << "--emit-jax does not support '" << other->getName() << "'";
      });
}

LogicalResult FunctionPrinter::printBlock(Block &block) {
  for (Operation &op : block)
    if (failed(stages ? printStaged(&op) : printOp(&op)))
      return failure();
  return success();
}

std::string jax::carriedName(StringRef init) {
  auto [base, count] = init.rsplit('_');
  unsigned number = 0;
  if (!count.empty() && !count.getAsInteger(10, number))
    init = base;
  bool isName =
      llvm::all_of(init, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  return isName ? init.str() : "value";
}

static std::string
dictionary(ArrayRef<std::pair<std::string, std::string>> entries) {
  return cat("{",
             commas(llvm::map_to_vector(entries,
                                        [](const auto &entry) {
                                          return cat(quoted(entry.first), ": ",
                                                     entry.second);
                                        })),
             "}");
}

LogicalResult FunctionPrinter::print(StringRef name, StringRef comment,
                                     Block &program) {
  SmallVector<std::string> arguments;
  for (const Parameter &parameter : parametersOf(file, program))
    arguments.push_back(parameter.name);
  os << "def " << name << "(" << commas(arguments) << "):\n";
  line(cat("\"\"\"", comment, "\"\"\""));
  auto device = dyn_cast<spmd::ProgramOp>(program.getParentOp());
  isOfDevice = bool(device);
  if (device && device.getPipeline())
    beginStages(device);
  if (failed(printBlock(program)))
    return failure();
  line(cat("return ", dictionary(outputs), ", ", dictionary(updates)));
  os << "\n\n";
  return success();
}

std::string jax::literal(shd::ConstantOp op) {
  Type element = op.getType().getElementType();
  auto value = cast<DenseElementsAttr>(op.getValue());
  if (auto exact = op->getAttrOfType<FloatAttr>(shd::kExact))
    return number(exact.getValue());
  if (isa<FloatType>(element))
    return number(value.getSplatValue<APFloat>());
  APInt integer = value.getSplatValue<APInt>();
  if (element.isInteger(1))
    return integer.isZero() ? "False" : "True";
  SmallString<24> text;
  integer.toString(text, 10, /*Signed=*/!element.isUnsignedInteger());
  return text.str().str();
}
