//===- Model.h - A network at fixed prices of memory ----------*- C++ -*-===//
//
// The live nodes of a network with memory priced into their costs, in scaled
// integers: what elimination and message passing work on. For any prices that
// are not negative, the least cost of the model is at most that of the network.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_MODEL_H
#define SHARDC_SOLVER_MODEL_H

#include "shardc/Solver/Arithmetic.h"
#include "shardc/Solver/Network.h"

namespace shardc::solver {

/// A cost table, scaled.
struct ScaledTable {
  uint32_t rows = 0, columns = 0;
  std::vector<Scaled> costs; // row-major

  Scaled at(Label row, Label column) const {
    return costs[size_t(row) * columns + column];
  }
  /// The costs column-major: made when they are first asked for, since sweeps
  /// of messages seldom do.
  const std::vector<Scaled> &byColumns() const {
    if (columnMajor.empty())
      columnMajor = transposed(costs, rows, columns);
    return columnMajor;
  }
  /// To be called when `costs` have changed.
  void forgetColumns() { columnMajor.clear(); }

private:
  mutable std::vector<Scaled> columnMajor;
};

/// For each row, none negative: 2^-kPriceBits scaled units per byte.
using Prices = std::vector<int64_t>;
inline constexpr unsigned kPriceBits = 20;

/// Prices in integers. They are lowered where what fits could pay more than
/// `most`, in scaled units, for all rows together.
Prices roundPrices(const Network &network, llvm::ArrayRef<double> prices,
                   Scaled most = kInfinity / 2);
/// Prices of a network's rows, from cost units per byte at each point of its
/// problem.
Prices pricesAt(const Network &network, llvm::ArrayRef<double> multipliers,
                unsigned shift);
/// The other way: writes those of the network's points.
void storePrices(const Network &network, const Prices &prices, unsigned shift,
                 std::vector<double> &multipliers);

/// For each pair what was moved from it to the labels of its ends.
struct Messages {
  std::vector<std::vector<Scaled>> toFirst, toSecond;
};

class Model {
public:
  struct Pair {
    uint32_t first = 0, second = 0; // positions of the model's variables
    LinkId link = 0;
    std::shared_ptr<const ScaledTable> table;
    std::shared_ptr<const ScaledTable> unpriced;
    /// The table at the prices of its usages when it was made.
    std::shared_ptr<ScaledTable> priced;
    llvm::SmallVector<Int128, 2> pricedAt;
    /// The largest of each of the link's usages, once they were priced.
    llvm::SmallVector<int64_t, 1> mostBytes;

    uint32_t otherThan(uint32_t variable) const {
      return first == variable ? second : first;
    }
  };

  /// Prices are 0 at first. The network must outlive the model and keep its
  /// structure. Costs are multiplied by 2^shift.
  Model(const Network &network, unsigned shift);

  /// The largest shift, at most 20, at which sums of costs stay below `limit`;
  /// 0 if there is none.
  static unsigned largestShift(const Network &network,
                               Scaled limit = kInfinity / 8);

  /// Undoes applyMessages().
  void setPrices(Prices prices);
  /// Moves costs between pairs and variables; no assignment's sum changes.
  void applyMessages(const Messages &messages);
  const Prices &getPrices() const { return prices; }

  const Network &getNetwork() const { return *network; }
  unsigned getShift() const { return shift; }
  size_t size() const { return unary.size(); }
  Variable nodeOf(uint32_t variable) const { return nodes[variable]; }
  /// Costs of each variable's labels, priced.
  llvm::ArrayRef<Scaled> costs(uint32_t variable) const {
    return unary[variable];
  }
  llvm::ArrayRef<Pair> pairs() const { return allPairs; }
  /// Positions in pairs() of each variable's pairs.
  llvm::ArrayRef<uint32_t> pairsOf(uint32_t variable) const {
    return incident[variable];
  }

  /// The network's bound for a least priced sum, rounded up to a cost.
  Cost boundFor(Int128 leastSum) const;
  /// Priced sums above this belong to no assignment that costs less than
  /// `upper` and fits.
  Int128 sumLimit(Cost upper) const;
  /// Priced sums of what costs less than `upper` and fits stay below infinity,
  /// at which sums stop: so none of it is taken for forbidden.
  bool tells(Cost upper) const { return sumLimit(upper) < kInfinity; }
  /// The offset of priced sums: the constant less the priced slack.
  Int128 offset() const;

  /// Sum of costs without prices, scaled; kInfinity or more if labels or pairs
  /// are not allowed.
  Int128 unpricedSum(llvm::ArrayRef<Label> labels) const;

  /// Labels by node (as in project() and recover()) for labels by variable.
  std::vector<Label> toNodes(llvm::ArrayRef<Label> labels) const;
  std::vector<Label> fromNodes(llvm::ArrayRef<Label> nodeLabels) const;

private:
  void priceNodes();
  void pricePairs();

  const Network *network;
  unsigned shift;
  Prices prices;
  std::vector<Int128> priceSums; // of the rows before each row
  std::vector<Variable> nodes;
  std::vector<std::vector<Scaled>> unary;
  std::vector<Pair> allPairs;
  std::vector<std::vector<uint32_t>> incident;
};

/// Keeps only these labels of the model's variables. The model is of no more
/// use.
void filterLabels(Network &network, const Model &model, const LabelSets &kept);

/// Bounding anew pays if this part of all labels is gone.
inline constexpr double kWorthwhilePart = 0.03;
/// The share of all labels that is not kept.
double removedPart(const LabelSets &kept);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_MODEL_H
