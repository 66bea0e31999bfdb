//===- NetworkBuilder.h - Builds the optimizer's problem ------*- C++ -*-===//
//
// Private to lib/Optimizer. Network.cpp holds the order of things, Values.cpp
// the variables of values, Reads.cpp the tables between values and who reads
// them, Groups.cpp those of fusion groups.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_NETWORKBUILDER_H
#define SHARDC_LIB_OPTIMIZER_NETWORKBUILDER_H

#include "shardc/Cost/Saturating.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Optimizer/Network.h"

namespace shardc {

/// Sums that are too large stop at what Problem::check() refuses.
inline solver::Cost scaled(Picoseconds picoseconds, int64_t count) {
  return picoseconds == solver::kForbidden
             ? solver::kForbidden
             : std::min(saturatingMultiply(picoseconds, count),
                        solver::kMaxTotal);
}

inline solver::Cost sum(solver::Cost a, solver::Cost b) {
  return a == solver::kForbidden || b == solver::kForbidden
             ? solver::kForbidden
             : std::min(saturatingAdd(a, b), solver::kMaxTotal);
}

/// The costs, or none if they are all nothing.
inline std::vector<solver::Cost> unlessZero(std::vector<solver::Cost> costs) {
  if (llvm::all_of(costs, [](solver::Cost cost) {
        return cost == 0 || cost == solver::kForbidden;
      }))
    return {};
  return costs;
}

/// Costs of a label or pair: weighted, as the problem has it; then, where
/// resources are measured, its time on the device and on each physical network.
/// All are forbidden, or none.
class EntryCosts {
public:
  explicit EntryCosts(size_t size, solver::Cost each = 0) : each(size, each) {}

  bool isForbidden() const { return each.front() == solver::kForbidden; }
  llvm::ArrayRef<solver::Cost> all() const { return each; }
  solver::Cost &weighed() { return each.front(); }
  /// None if resources are not measured.
  llvm::MutableArrayRef<solver::Cost> resources() {
    return llvm::MutableArrayRef(each).drop_front();
  }
  EntryCosts &operator+=(const EntryCosts &other) {
    for (auto [cost, more] : llvm::zip_equal(each, other.each))
      cost = sum(cost, more);
    return *this;
  }

private:
  llvm::SmallVector<solver::Cost, 6> each;
};

/// A table of them.
struct CostTable {
  uint32_t rows = 0, columns = 0;
  /// Weighed, then of each resource; row-major.
  std::vector<std::vector<solver::Cost>> costs;

  CostTable(size_t rows, size_t columns, size_t numResources)
      : rows(rows), columns(columns), costs(1 + numResources) {
    for (std::vector<solver::Cost> &list : costs)
      list.reserve(rows * columns);
  }
  void append(const EntryCosts &entry) {
    for (auto [list, cost] : llvm::zip_equal(costs, entry.all()))
      list.push_back(cost);
  }
};

/// How so many runs of something count.
class CostScale {
public:
  CostScale(const PlanningContext &context, const NetworkOptions &options)
      : weights(options.weights),
        resources(options.measureResources ? 1 + context.model.physical().size()
                                           : 0) {}

  size_t numResources() const { return resources; }

  EntryCosts none() const { return EntryCosts(1 + resources); }
  EntryCosts forbidden() const {
    return EntryCosts(1 + resources, solver::kForbidden);
  }
  /// A kernel.
  EntryCosts kernel(Picoseconds time, int64_t count) const;
  /// Collectives that take `time` in all, and occupy each network so long.
  EntryCosts collectives(Picoseconds time, llvm::ArrayRef<Picoseconds> occupied,
                         int64_t count) const;
  EntryCosts collective(const CollectiveCost &cost, int64_t count) const;
  /// A transfer to the host or back. The link is no resource of the network, so
  /// that bounds leave it out.
  EntryCosts transfer(const CollectiveCost &cost, int64_t count) const {
    return collectives(toPicoseconds(cost.seconds()), {}, count);
  }

private:
  Weights weights;
  size_t resources;
};

/// Sorted, each once.
inline std::vector<Layout> distinct(std::vector<Layout> layouts) {
  llvm::sort(layouts);
  layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
  return layouts;
}

inline unsigned numberOf(llvm::ArrayRef<Layout> sorted, const Layout &layout) {
  return llvm::lower_bound(sorted, layout) - sorted.begin();
}

/// The user's name of what an operation makes, for messages; empty without one.
llvm::StringRef nameOfOperation(mlir::Operation *op);

/// Price and memory of one reshard in the network.
struct PairPrice {
  /// Forbidden if there is no such reshard.
  EntryCosts costs;
  /// One run.
  Picoseconds time = 0;
  /// Nothing to do but slicing.
  bool isFree = false;
  int64_t extraBytes = 0;
  int64_t storeExtraBytes = 0;
};

/// From each of some layouts to each of others, so many times.
class PriceMatrix {
public:
  PriceMatrix(ReshardPlanner &planner, const CostScale &scale,
              const TensorShape &shape, llvm::ArrayRef<Layout> from,
              llvm::ArrayRef<Layout> to, int64_t count,
              const AxisBlocks &blocks);

  const PairPrice &at(size_t from, size_t to) const {
    return pairs[from * columns + to];
  }
  /// Those of one run, row-major; forbidden where there is no reshard.
  std::vector<Picoseconds> times() const {
    std::vector<Picoseconds> result;
    for (const PairPrice &pair : pairs)
      result.push_back(pair.costs.isForbidden()
                           ? solver::kForbidden
                           : std::min(pair.time, solver::kForbidden));
    return result;
  }

private:
  size_t columns;
  std::vector<PairPrice> pairs;
};

class NetworkBuilder {
public:
  NetworkBuilder(PlanningContext &context, const NetworkOptions &options)
      : context(context), options(options), scale(context, options) {}

  std::variant<PlanNetwork, NoNetwork> build(shd::ProgramOp program);

private:
  /// A consumer's layouts of one value: [use][label].
  struct Consumer {
    /// The labels, where they say how the value is read; else null.
    const std::vector<ChunkStrategy> *strategies = nullptr;
    llvm::SmallVector<mlir::OpOperand *, 2> operands;
    solver::Variable variable = 0;
    unsigned numLabels = 0;
    llvm::SmallVector<const std::vector<Layout> *, 2> layouts;
    int64_t count = 1;
    /// When what is resharded for it is there.
    uint32_t begin = 0, end = 0;
    /// False for the rest of the maker's group: it reads what is stored.
    bool readsCopies = true;
  };

  using Layouts = std::vector<Layout>;
  /// Layouts in which some labels of a consumer read a value, by operand.
  struct Want {
    llvm::SmallVector<unsigned, 2> layouts;
    /// It is computed in place; or it travels, and is read where it is stored.
    llvm::SmallVector<bool, 2> inlined, moved;
    LeaderRead leaderRead = LeaderRead::Any;
  };
  struct ReadPrice {
    EntryCosts costs;
    int64_t bytes = 0;
    /// The longest wait of a chain for one run.
    Picoseconds time = 0;
  };

  llvm::LogicalResult buildDomains(shd::ProgramOp program);
  ChunkDomain domainOf(unsigned chunk, const NeighbourAxes *neighbours) const;
  void addPrologueLabels();
  void addLeaderReadLabels();
  bool isPrologueValue(const GraphValue &value) const {
    return value.kind == GraphValue::Kind::Computed && !value.uses.empty() &&
           network.graph.chunks[value.chunk].prologue;
  }
  solver::Variable addVariable(llvm::StringRef name, unsigned numLabels);
  void addUsage(solver::Variable variable, unsigned label, uint32_t begin,
                uint32_t end, int64_t bytes);
  void addEdgeUsage(unsigned edge, uint32_t begin, uint32_t end,
                    std::vector<int64_t> bytes);
  unsigned addEdge(solver::Variable first, solver::Variable second,
                   CostTable table);
  /// A link of chains, and what one run of it takes by a table's entries.
  struct TimedLink {
    ChainLink link;
    std::vector<Picoseconds> times;
  };
  unsigned addEdge(solver::Variable first, solver::Variable second,
                   CostTable table, std::vector<TimedLink> links);
  void addCosts(solver::Variable variable, llvm::ArrayRef<EntryCosts> costs,
                std::optional<TimedLink> link);
  /// The edge's costs are collectives of the link.
  void keepEdge(ChainLink link, unsigned edge, int64_t count) {
    if (options.measureLinks)
      network.linkEdges[link].push_back({edge, count});
  }
  void keepTimes(TimedLink link, solver::Variable first,
                 std::optional<solver::Variable> second, unsigned columns);

  llvm::LogicalResult buildValue(unsigned index);
  bool needsOwnVariable(const GraphValue &value) const;
  shd::ShardingAttr pinOf(const GraphValue &value) const;
  std::optional<Layout> closedPin(const GraphValue &value) const;
  std::vector<Layout> layoutsToChoose(unsigned index, bool withPartial) const;
  std::vector<Layout> consumedLayouts(const GraphValue &value) const;
  std::vector<Layout> declaredLayouts(unsigned index) const;
  std::vector<Layout> layoutsToStore(unsigned index) const;
  std::vector<Layout> storedLayouts(unsigned index);
  std::vector<Layout> copyLayouts(unsigned index);
  void enumerateLabels(unsigned index, std::vector<Layout> stored);
  void linkToMaker(unsigned index);
  void addOwnMemory(unsigned index);
  /// The tensor in whose buffer a value lies if it is stored as that is.
  static std::optional<unsigned> homeOf(const GraphValue &value) {
    return value.viewOf ? value.viewOf : value.intoState;
  }
  void addMemoryBesideHome(unsigned index);
  void addCopies(unsigned index);
  void aliasMaker(unsigned index);
  void aliasStacked(unsigned index);
  void addPartFromHost(unsigned index);
  void addTransfers(unsigned index);

  Consumer consumerOf(const GraphValue &value, unsigned user) const;
  void connectUses(unsigned index);
  void connect(unsigned index, const Consumer &consumer, ChainLink link);
  void connectDirectly(unsigned index, const Consumer &consumer,
                       ChainLink link);
  void connectByRead(unsigned index, const Consumer &consumer, ChainLink link);
  std::vector<Picoseconds> timesThroughCopies(unsigned index,
                                              const Layouts &wanted);
  std::vector<Want> distinctWants(const Consumer &consumer, Layouts &wanted,
                                  std::vector<unsigned> &wantOf) const;
  ReadPrice priceReads(const PriceMatrix &prices, unsigned from,
                       llvm::ArrayRef<unsigned> wants) const;
  CostTable tableOf(size_t rows, size_t columns) const {
    return CostTable(rows, columns, scale.numResources());
  }
  bool readsAsStored(const Consumer &consumer, const Want &want,
                     const Layout &layout, const StoredLabel &stored,
                     llvm::ArrayRef<Layout> wanted) const;
  bool inlinesAsStored(const Want &want, const Layout &layout,
                       const StoredLabel &stored,
                       llvm::ArrayRef<Layout> wanted) const;
  static bool readsAll(const Want &want, const Layout &layout,
                       llvm::ArrayRef<Layout> wanted) {
    return llvm::all_of(want.layouts, [&](unsigned number) {
      return wanted[number] == layout;
    });
  }
  void connectFlow(unsigned index, const GraphValue::Flow &flow);
  bool isFusedUse(const GraphValue &value, const ChunkUse &use) const;
  bool staysInGroup(const GraphValue &value) const;
  bool leavesItsGroup(const GraphValue &value) const;
  bool reshardsBeforeStore(const GraphValue &value) const;

  size_t countAxes() const;
  double countPlacements(llvm::ArrayRef<int64_t> extents) const;
  double countStrategies(mlir::Operation *op);
  mlir::Operation *findWide(double maxStrategies);
  bool hasManyLabels();
  bool hasManyOperations();
  double countEntries() const;
  void costChunks();
  void costGroup(unsigned group);
  /// What travels in one run, and how many devices it visits.
  struct RingTime {
    Picoseconds moves = 0;
    int64_t devices = 1;
  };
  std::vector<RingTime> ringTimes(unsigned chunk);
  static Picoseconds withRing(Picoseconds time, llvm::ArrayRef<RingTime> rings,
                              unsigned label);
  void costRings(unsigned chunk);
  void costHalos(unsigned chunk);
  /// The first point at which a value is there for the chunk to read it.
  uint32_t beginOfReads(unsigned chunk) const;
  const ShardingRule &ruleOf(mlir::Operation *op);
  PartWork work(unsigned chunk, unsigned label);
  void addPrologue(mlir::Value value, const Layout &layout, PartWork &part);
  Picoseconds timeOf(const PartWork &first, const PartWork *second,
                     llvm::ArrayRef<unsigned> chunks) const;
  std::vector<PartWork> works(unsigned chunk);
  std::vector<Picoseconds> timesAlone(unsigned chunk,
                                      llvm::ArrayRef<PartWork> works) const;
  bool neededInHbm(mlir::Value value, llvm::ArrayRef<unsigned> chunks) const;
  PriceMatrix pricesOf(unsigned value, llvm::ArrayRef<Layout> from,
                       llvm::ArrayRef<Layout> to, int64_t count) {
    return PriceMatrix(context.planner, scale,
                       shd::movedShape(network.graph.values[value].value), from,
                       to, count,
                       options.choice ? options.choice->blocks : AxisBlocks());
  }
  TensorShape shapeOf(unsigned index) const {
    return shd::tensorShape(network.graph.values[index].value.getType());
  }

  PlanningContext &context;
  const NetworkOptions &options;
  const CostScale scale;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<ShardingRule>> rules;
  PlanNetwork network;
  /// shd::kStoredAsRead.
  bool isStoredAsRead = false;
};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_NETWORKBUILDER_H
