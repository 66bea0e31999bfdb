//===- OrderIndices.cpp - shd-order-indices, shd-settle-orders -*- C++ -*-===//
//
// docs/CostModel.md#balanced-causal-attention. Dimensions that hold the same
// positions are one class. A class is marked before the search, dealt to as
// many parts as could be, since prices do not depend on how many there are; and
// dealt to as many as the plan needs afterwards.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/GroupCosts.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>
#include <set>

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDORDERINDICES
#define GEN_PASS_DEF_SHDSETTLEORDERS
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Classes of dimensions
//===----------------------------------------------------------------------===//

/// One dimension of a value, by the number of its first one.
class Dimensions {
public:
  explicit Dimensions(ProgramOp program) {
    program.walk([&](Operation *op) {
      for (Value result : op->getResults())
        add(result);
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          add(argument);
    });
    for (unsigned i = 0; i < count; ++i)
      leader.push_back(i);
  }

  unsigned of(Value value, unsigned dim) const {
    return first.lookup(value) + dim;
  }
  unsigned find(unsigned dimension) const {
    while (leader[dimension] != dimension)
      dimension = leader[dimension];
    return dimension;
  }
  void join(unsigned a, unsigned b) {
    a = find(a);
    b = find(b);
    leader[std::max(a, b)] = std::min(a, b);
  }
  /// The last dimensions of two values, as many as `b` has.
  void joinLast(Value a, Value b) {
    unsigned rankA = rank(a), rankB = rank(b);
    for (unsigned dim = 0; dim < rankB; ++dim)
      join(of(a, rankA - rankB + dim), of(b, dim));
  }

  static unsigned rank(Value value) {
    return unsigned(cast<RankedTensorType>(value.getType()).getRank());
  }

private:
  void add(Value value) {
    if (!isa<RankedTensorType>(value.getType()))
      return;
    first[value] = count;
    count += rank(value);
  }

  llvm::DenseMap<Value, unsigned> first;
  std::vector<unsigned> leader;
  unsigned count = 0;
};

/// A dimension of an operand or a result of an operation with a sharding rule.
struct RuleDim {
  unsigned dimension = 0;
  const DimFactors *factors = nullptr;
};

SmallVector<RuleDim, 12> dimsOf(const Dimensions &dimensions, Operation *op,
                                const ShardingRule &rule) {
  SmallVector<RuleDim, 12> dims;
  auto add = [&](Value value, const TensorFactors &tensor) {
    for (auto [dim, factors] : llvm::enumerate(tensor))
      dims.push_back({dimensions.of(value, dim), &factors});
  };
  for (auto [i, tensor] : llvm::enumerate(rule.operands))
    add(op->getOperand(i), tensor);
  for (auto [i, tensor] : llvm::enumerate(rule.results))
    add(op->getResult(i), tensor);
  return dims;
}

/// A class that causal attention runs along.
struct OrderClass {
  std::string name;
  /// Those of all its dimensions.
  std::set<std::string> names;
  int64_t extent = 1;
  std::string obstacle;
  /// The greatest number of parts to which it may be dealt.
  int64_t parts = 1;
  std::optional<Location> loc;
  /// Those without a window, and behind them those that follow its order.
  SmallVector<Operation *> attentions;
};

class OrderChooser {
public:
  explicit OrderChooser(ProgramOp program)
      : program(program), dimensions(program) {}

  LogicalResult run();

private:
  void join();
  void joinRule(ShardingRuleOpInterface op);
  void findClasses();
  void findNames();
  void findObstacles();
  void addObstacle(unsigned dimension, const llvm::Twine &obstacle);
  void findObstaclesIn(ShardingRuleOpInterface op);
  void findReadSlots();
  void chooseParts(OrderClass &each);
  void checkBlocks();
  bool isWritten(const OrderClass &each, StringRef order) const;
  LogicalResult checkWritten();
  void mark();
  void markOperation(ShardingRuleOpInterface op);
  void markDims(Operation *op, Value value, ArrayAttr names);
  OrderClass *classOf(unsigned dimension) {
    auto it = classes.find(dimensions.find(dimension));
    return it == classes.end() ? nullptr : &it->second;
  }
  int64_t numberOf(unsigned dimension) {
    return classes.find(dimensions.find(dimension)) - classes.begin();
  }

  ProgramOp program;
  Dimensions dimensions;
  llvm::MapVector<unsigned, OrderClass> classes;
};

/// Dimensions with the same factor hold the same positions; of merged ones the
/// first factor's, in blocks.
void OrderChooser::joinRule(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  SmallVector<int64_t> known(rule.factors.size(), -1);
  for (const RuleDim &dim : dimsOf(dimensions, op, rule)) {
    if (dim.factors->empty())
      continue;
    int64_t &first = known[dim.factors->front()];
    if (first < 0)
      first = dim.dimension;
    else
      dimensions.join(unsigned(first), dim.dimension);
  }
}

void OrderChooser::join() {
  llvm::StringMap<unsigned> ofInput;
  program.walk([&](Operation *op) {
    if (auto declare = dyn_cast<DeclareOp>(op)) {
      if (declare.getKind() != TensorKind::Input)
        return;
      for (auto [dim, name] : llvm::enumerate(
               declare.getIndices().getAsValueRange<StringAttr>())) {
        unsigned own = dimensions.of(declare.getResult(), dim);
        auto [it, isNew] = ofInput.try_emplace(name, own);
        if (!isNew)
          dimensions.join(it->second, own);
      }
    } else if (auto part = dyn_cast<PartOp>(op)) {
      dimensions.joinLast(part.getSource(), part.getResult());
    } else if (auto update = dyn_cast<UpdateOp>(op)) {
      dimensions.joinLast(update.getState(), update.getValue());
    } else if (auto repeat = dyn_cast<RepeatOp>(op)) {
      Operation *yield = repeat.getBody().front().getTerminator();
      for (auto [i, init] : llvm::enumerate(repeat.getInits())) {
        dimensions.joinLast(init, repeat.getCarried()[i]);
        dimensions.joinLast(init, yield->getOperand(i));
        dimensions.joinLast(init, repeat.getResult(i));
      }
    } else if (auto computes = dyn_cast<ShardingRuleOpInterface>(op)) {
      joinRule(computes);
    }
  });
}

/// The dimensions of queries' and keys' positions, if attention is causal and
/// both are those of an index.
std::optional<std::pair<unsigned, unsigned>>
causalDims(const Dimensions &dimensions, Operation *op) {
  auto attention = dyn_cast<AttentionOpInterface>(op);
  if (!attention || !attention.getCausal() || attention.getAt() ||
      !attention.getQuery())
    return std::nullopt;
  IndexingAttr indexing = cast<ShardingRuleOpInterface>(op).getIndexing();
  auto dimOf = [&](unsigned operand, StringRef index) {
    auto names = indexing.getOperandIndices(operand);
    return dimensions.of(op->getOperand(operand),
                         unsigned(llvm::find(names, index) - names.begin()));
  };
  return std::pair(dimOf(AttentionOp::kQueryOperand, *attention.getQuery()),
                   dimOf(AttentionOp::kKeyOperand, attention.getKey()));
}

/// The window of attention that does not reach all its keys.
std::optional<int64_t> windowOf(ShardingRuleOpInterface op) {
  auto attention = cast<AttentionOpInterface>(op.getOperation());
  ShardingRule rule = op.getShardingRule();
  int64_t keys = rule.factors[*rule.findFactor(attention.getKey())].extent;
  std::optional<uint64_t> window = attention.getWindow();
  return window && int64_t(*window) < keys ? std::optional<int64_t>(*window)
                                           : std::nullopt;
}

/// Attention with a window is nearly balanced in any order, and follows that of
/// the class.
void OrderChooser::findClasses() {
  SmallVector<std::pair<unsigned, ShardingRuleOpInterface>> windows;
  program.walk([&](ShardingRuleOpInterface op) {
    std::optional<std::pair<unsigned, unsigned>> dims =
        causalDims(dimensions, op);
    if (!dims)
      return;
    if (windowOf(op))
      return windows.push_back({dims->first, op});
    ShardingRule rule = op.getShardingRule();
    auto attention = cast<AttentionOpInterface>(op.getOperation());
    OrderClass &each = classes[dimensions.find(dims->first)];
    if (each.attentions.empty()) {
      each.name = attention.getQuery()->str();
      each.extent = rule.factors[*rule.findFactor(each.name)].extent;
      each.loc = op.getLoc();
    }
    each.attentions.push_back(op);
  });
  for (auto [dimension, op] : windows)
    if (OrderClass *each = classOf(dimension))
      each->attentions.push_back(op);
}

void OrderChooser::findNames() {
  auto add = [&](unsigned dimension, StringRef name) {
    if (OrderClass *each = classOf(dimension))
      each->names.insert(name.str());
  };
  program.walk([&](Operation *op) {
    if (auto declare = dyn_cast<DeclareOp>(op)) {
      for (auto [dim, name] :
           llvm::enumerate(declare.getIndices().getAsValueRange<StringAttr>()))
        add(dimensions.of(declare.getResult(), dim), name);
    } else if (auto computes = dyn_cast<ShardingRuleOpInterface>(op)) {
      ShardingRule rule = computes.getShardingRule();
      for (const RuleDim &dim : dimsOf(dimensions, op, rule))
        if (!dim.factors->empty())
          add(dim.dimension, rule.factors[dim.factors->front()].name);
    }
  });
}

//===----------------------------------------------------------------------===//
// Obstacles
//===----------------------------------------------------------------------===//

/// The first one counts.
void OrderChooser::addObstacle(unsigned dimension,
                               const llvm::Twine &obstacle) {
  if (OrderClass *each = classOf(dimension); each && each->obstacle.empty())
    each->obstacle = obstacle.str();
}

void OrderChooser::findObstaclesIn(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  for (const RuleDim &dim : dimsOf(dimensions, op, rule))
    for (auto [i, factor] : llvm::enumerate(*dim.factors)) {
      if (std::string why = orderObstacle(op, rule, factor);
          !why.empty() && i == 0)
        addObstacle(dim.dimension, why);
    }
  // The minor factors of a merged dimension stay in order.
  for (const RuleDim &merged : dimsOf(dimensions, op, rule))
    for (unsigned minor : llvm::drop_begin(*merged.factors))
      for (const RuleDim &dim : dimsOf(dimensions, op, rule))
        if (!dim.factors->empty() && dim.factors->front() == minor)
          addObstacle(dim.dimension, "it is merged with an index before it");
  std::optional<std::pair<unsigned, unsigned>> causal =
      causalDims(dimensions, op);
  if (causal &&
      dimensions.find(causal->first) != dimensions.find(causal->second)) {
    constexpr const char *kOthers =
        "attention's queries and keys have positions of different tensors";
    addObstacle(causal->first, kOthers);
    addObstacle(causal->second, kOthers);
  }
}

/// True if an operation does the same with the elements along a factor, in any
/// order of them.
bool isAnyOrder(ShardingRuleOpInterface op, const ShardingRule &rule,
                unsigned factor) {
  bool depends = isa<IotaOp, RopeOp, AttentionOp, AttentionGradOp, GatherOp,
                     ScatterOp, ScatterSumOp>(op.getOperation());
  return !depends && orderObstacle(op, rule, factor).empty();
}

/// Where no token is dropped, an order of tokens decides only which slots they
/// have. Nothing may tell the slots apart but the combine that brings them
/// back: no declared tensor or output has them, nothing depends on their order,
/// and they are those of one choice of experts.
void OrderChooser::findReadSlots() {
  llvm::MapVector<unsigned, SmallVector<DispatchOp, 2>> dispatches;
  llvm::DenseSet<unsigned> read;
  program.walk([&](DispatchOp op) {
    ShardingRule rule = op.getShardingRule();
    for (auto [dim, factors] : llvm::enumerate(rule.results.front()))
      if (rule.factors[factors.front()].name == op.getSlots())
        dispatches[dimensions.find(dimensions.of(op->getResult(0), dim))]
            .push_back(op);
  });
  auto readAll = [&](Value value) {
    for (unsigned dim = 0; dim < Dimensions::rank(value); ++dim)
      read.insert(dimensions.find(dimensions.of(value, dim)));
  };
  program.walk([&](Operation *op) {
    if (auto declare = dyn_cast<DeclareOp>(op)) {
      if (declare.getKind() != TensorKind::Saved)
        readAll(declare.getResult());
    } else if (auto output = dyn_cast<OutputOp>(op)) {
      readAll(output.getValue());
    } else if (auto computes = dyn_cast<ShardingRuleOpInterface>(op)) {
      ShardingRule rule = computes.getShardingRule();
      for (const RuleDim &dim : dimsOf(dimensions, op, rule))
        for (unsigned factor : *dim.factors)
          if (!isAnyOrder(computes, rule, factor))
            read.insert(dimensions.find(dim.dimension));
    }
  });
  for (auto &[slots, list] : dispatches) {
    bool isOne = llvm::all_of(list, [&](DispatchOp op) {
      return op->getOperand(kPicksOperand) ==
             list.front()->getOperand(kPicksOperand);
    });
    if (isOne && !read.contains(slots))
      continue;
    for (DispatchOp op : list) {
      ShardingRule rule = op.getShardingRule();
      ExpertIndices indices =
          ExpertIndices::of(cast<ExpertsOpInterface>(op.getOperation()));
      for (const RuleDim &dim : dimsOf(dimensions, op, rule))
        if (!dim.factors->empty() &&
            llvm::is_contained(indices.tokens,
                               rule.factors[dim.factors->front()].name))
          addObstacle(dim.dimension,
                      "the slots of its dispatch are told apart");
    }
  }
}

void OrderChooser::findObstacles() {
  program.walk([&](Operation *op) {
    if (auto declare = dyn_cast<DeclareOp>(op)) {
      // Those of prefill become decode's, from which its own order is known.
      if (declare.getKind() != TensorKind::State ||
          servingPhase(program) == ServingPhase::Prefill)
        return;
      for (unsigned dim = 0; dim < Dimensions::rank(declare.getResult()); ++dim)
        addObstacle(dimensions.of(declare.getResult(), dim),
                    stringifyTensorKind(declare.getKind()) + " '" +
                        declare.getSym() + "' is stored in order");
    } else if (auto computes = dyn_cast<ShardingRuleOpInterface>(op)) {
      findObstaclesIn(computes);
    }
  });
  findReadSlots();
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// True if the program says so of one of the names of the class.
bool OrderChooser::isWritten(const OrderClass &each, StringRef order) const {
  auto written = program->getAttrOfType<DictionaryAttr>(kOrders);
  return written && llvm::any_of(each.names, [&](const std::string &name) {
           auto known = written.getAs<StringAttr>(name);
           return known && known.getValue() == order;
         });
}

LogicalResult OrderChooser::checkWritten() {
  auto written = program->getAttrOfType<DictionaryAttr>(kOrders);
  for (NamedAttribute entry :
       written ? written.getValue() : ArrayRef<NamedAttribute>())
    // One text has both phases: a decode step has one position.
    if (cast<StringAttr>(entry.getValue()).getValue() == "zigzag" &&
        servingPhase(program) != ServingPhase::Decode &&
        llvm::none_of(classes, [&](const auto &each) {
          return each.second.names.contains(entry.getName().str());
        }))
      return program.emitError("index '")
             << entry.getName().getValue()
             << "' cannot be in zigzag order: no causal attention without a "
                "window runs along it";
  for (const auto &[dimension, each] : classes)
    if (isWritten(each, "zigzag") && isWritten(each, "contiguous"))
      return emitError(*each.loc)
             << "index '" << each.name
             << "' cannot be both in zigzag order and contiguous: "
             << llvm::join(each.names, ", ") << " hold the same positions";
  return success();
}

/// The most devices of some mesh axes of which each has two chunks that are
/// long enough. Any of the sharding's parts must be whole pairs of chunks, or
/// parts of one chunk.
void OrderChooser::chooseParts(OrderClass &each) {
  MeshAttr attr = program.getMeshAttr();
  if (!attr)
    return;
  Mesh mesh = toMesh(attr);
  std::vector<int64_t> products = {1};
  for (const AxisList &axis : separateAxes(mesh))
    for (int64_t i = 0, size = int64_t(products.size()); i < size; ++i)
      if (int64_t shards = products[i] * mesh.groupSize(axisSet(axis));
          program.getAllowPadding() || each.extent % shards == 0)
        products.push_back(shards);
  auto fits = [&](int64_t parts) {
    return each.extent % (2 * parts) == 0 &&
           each.extent / (2 * parts) >= kLeastChunk;
  };
  // With other numbers of devices, a part is whole pairs of chunks or one
  // chunk.
  auto isBalanced = [&](int64_t parts) {
    return llvm::all_of(products, [&](int64_t shards) {
      return parts % shards == 0 ||
             (shards % (2 * parts) == 0 && each.extent % shards == 0);
    });
  };
  bool isTooShort = true;
  for (int64_t parts : products) {
    if (parts == 1 || !fits(parts))
      continue;
    isTooShort = false;
    if (isBalanced(parts))
      each.parts = std::max(each.parts, parts);
  }
  if (each.parts > 1 || mesh.numDevices() == 1)
    return;
  each.obstacle = isTooShort
                      ? "its " + std::to_string(each.extent) +
                            " positions have no two chunks of at least " +
                            std::to_string(kLeastChunk) +
                            " for each device of a mesh axis"
                      : "chunks for the devices of some mesh axes do not make "
                        "whole parts on others";
}

//===----------------------------------------------------------------------===//
// Marks
//===----------------------------------------------------------------------===//

void setDealt(Operation *op, ArrayRef<NamedAttribute> entries) {
  if (!entries.empty())
    op->setAttr(kDealt, DictionaryAttr::get(op->getContext(), entries));
}

void OrderChooser::markOperation(ShardingRuleOpInterface op) {
  Builder builder(op);
  ShardingRule rule = op.getShardingRule();
  SmallVector<NamedAttribute> entries;
  llvm::SmallDenseSet<unsigned> seen;
  for (const RuleDim &dim : dimsOf(dimensions, op, rule)) {
    OrderClass *each = dim.factors->empty() ? nullptr : classOf(dim.dimension);
    if (!each || each->parts == 1)
      continue;
    unsigned factor = dim.factors->front();
    if (seen.insert(factor).second)
      entries.push_back(
          builder.getNamedAttr(rule.factors[factor].name,
                               builder.getDenseI64ArrayAttr(
                                   {numberOf(dim.dimension), each->parts})));
  }
  setDealt(op, entries);
}

void OrderChooser::markDims(Operation *op, Value value, ArrayAttr names) {
  Builder builder(op);
  SmallVector<NamedAttribute> entries;
  for (auto [dim, name] : llvm::enumerate(names.getAsRange<StringAttr>())) {
    unsigned dimension = dimensions.of(value, dim);
    OrderClass *each = classOf(dimension);
    if (each && each->parts > 1)
      entries.push_back({name, builder.getDenseI64ArrayAttr(
                                   {numberOf(dimension), each->parts})});
  }
  setDealt(op, entries);
}

void OrderChooser::mark() {
  Builder builder(program.getContext());
  program.walk([&](Operation *op) {
    if (auto declare = dyn_cast<DeclareOp>(op))
      markDims(op, declare.getResult(), declare.getIndices());
    else if (auto output = dyn_cast<OutputOp>(op))
      markDims(op, output.getValue(), output.getIndices());
    else if (auto computes = dyn_cast<ShardingRuleOpInterface>(op))
      markOperation(computes);
  });
  SmallVector<Attribute> records;
  for (auto [number, entry] : llvm::enumerate(classes)) {
    OrderClass &each = entry.second;
    for (Operation *attention : each.attentions)
      attention->setAttr(kOrderClass, builder.getI64IntegerAttr(number));
    records.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("index", builder.getStringAttr(each.name)),
         builder.getNamedAttr("devices", builder.getI64IntegerAttr(each.parts)),
         builder.getNamedAttr("isWanted", builder.getBoolAttr(false)),
         builder.getNamedAttr("obstacle",
                              builder.getStringAttr(each.obstacle))}));
  }
  if (!records.empty())
    program->setAttr(kOrderClasses, builder.getArrayAttr(records));
}

LogicalResult OrderChooser::run() {
  join();
  findClasses();
  findNames();
  if (failed(checkWritten()))
    return failure();
  if (classes.empty())
    return success();
  findObstacles();
  for (auto &[dimension, each] : classes) {
    if (isWritten(each, "contiguous"))
      each.obstacle = "the program says `order " + each.name + " = contiguous`";
    if (each.obstacle.empty())
      chooseParts(each);
  }
  checkBlocks();
  for (auto &[dimension, each] : classes)
    if (isWritten(each, "zigzag") && !each.obstacle.empty())
      return emitError(*each.loc)
             << "index '" << each.name
             << "' cannot be in zigzag order: " << each.obstacle;
  mark();
  return success();
}

/// All dimensions of a class are divided alike.
void OrderChooser::checkBlocks() {
  program.walk([&](ShardingRuleOpInterface op) {
    ShardingRule rule = op.getShardingRule();
    for (const RuleDim &dim : dimsOf(dimensions, op, rule)) {
      OrderClass *each =
          dim.factors->empty() ? nullptr : classOf(dim.dimension);
      if (!each || each->parts == 1)
        continue;
      int64_t extent = rule.factors[dim.factors->front()].extent;
      if (PositionOrder::isDealt(extent, each->parts))
        continue;
      each->obstacle = "it is split into " + std::to_string(extent) +
                       " blocks, no multiple of " +
                       std::to_string(2 * each->parts);
      each->parts = 1;
    }
  });
}

struct OrderIndicesPass : impl::ShdOrderIndicesBase<OrderIndicesPass> {
  void runOnOperation() override {
    if (failed(OrderChooser(getOperation()).run()))
      signalPassFailure();
  }
};

//===----------------------------------------------------------------------===//
// After the search
//===----------------------------------------------------------------------===//

/// What the plan needs of a class.
struct Need {
  int64_t parts = 1;
  /// The most devices over which attention without a window splits it.
  int64_t shards = 1;
};

Need needOf(const Mesh &mesh, Operation *op, int64_t most) {
  auto attention = cast<AttentionOpInterface>(op);
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  Strategy strategy = explicitStrategy(mesh, op, rule);
  Need need;
  for (StringRef index : {*attention.getQuery(), attention.getKey()}) {
    int64_t shards =
        mesh.groupSize(strategy.factorAxes[*rule.findFactor(index)]);
    need.shards = std::max(need.shards, shards);
    if (most % shards == 0)
      need.parts = std::lcm(need.parts, shards);
  }
  return need;
}

void settle(ProgramOp program) {
  auto records = program->getAttrOfType<ArrayAttr>(kOrderClasses);
  if (!records || !program.getMeshAttr())
    return;
  Builder builder(program.getContext());
  Mesh mesh = toMesh(program.getMeshAttr());
  SmallVector<Need> needs(records.size());
  auto mostOf = [&](int64_t number) {
    return cast<DictionaryAttr>(records[number])
        .getAs<IntegerAttr>("devices")
        .getInt();
  };
  program.walk([&](Operation *op) {
    auto number = op->getAttrOfType<IntegerAttr>(kOrderClass);
    if (!number)
      return;
    Need own = needOf(mesh, op, mostOf(number.getInt()));
    Need &need = needs[number.getInt()];
    need.parts = std::lcm(need.parts, own.parts);
    if (!windowOf(cast<ShardingRuleOpInterface>(op)))
      need.shards = std::max(need.shards, own.shards);
    op->removeAttr(kOrderClass);
  });
  program.walk([&](Operation *op) {
    auto dealt = op->getAttrOfType<DictionaryAttr>(kDealt);
    if (!dealt)
      return;
    SmallVector<NamedAttribute> entries;
    for (NamedAttribute entry : dealt) {
      int64_t number = cast<DenseI64ArrayAttr>(entry.getValue())[0];
      if (needs[number].parts > 1)
        entries.push_back(
            {entry.getName(),
             builder.getDenseI64ArrayAttr({number, needs[number].parts})});
    }
    op->removeAttr(kDealt);
    setDealt(op, entries);
  });
  SmallVector<Attribute> settled;
  for (auto [record, need] :
       llvm::zip_equal(records.getAsRange<DictionaryAttr>(), needs)) {
    NamedAttrList entries(record);
    entries.set("devices", builder.getI64IntegerAttr(need.parts));
    entries.set("isWanted", builder.getBoolAttr(need.shards > 1));
    if (int64_t most = record.getAs<IntegerAttr>("devices").getInt();
        most > 1 && need.parts == 1 && need.shards > 1)
      entries.set("obstacle", builder.getStringAttr(
                                  "chunks are for " + std::to_string(most) +
                                  " devices, and the plan splits it over " +
                                  std::to_string(need.shards)));
    settled.push_back(entries.getDictionary(program.getContext()));
  }
  program->setAttr(kOrderClasses, builder.getArrayAttr(settled));
}

struct SettleOrdersPass : impl::ShdSettleOrdersBase<SettleOrdersPass> {
  void runOnOperation() override { settle(getOperation()); }
};

} // namespace
} // namespace shardc::shd
