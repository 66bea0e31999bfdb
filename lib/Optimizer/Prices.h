//===- Prices.h - Memoised prices of reshards -----------------*- C++ -*-===//

#ifndef SHARDC_LIB_OPTIMIZER_PRICES_H
#define SHARDC_LIB_OPTIMIZER_PRICES_H

#include "shardc/Reshard/ReshardMemory.h"
#include "shardc/Solver/Problem.h"
#include <deque>
#include <unordered_map>

namespace shardc {

/// What the network needs to know of one reshard.
struct PairPrice {
  /// solver::kForbidden if there is no such reshard.
  Picoseconds picoseconds = solver::kForbidden;
  /// Nothing to do but slicing.
  bool isFree = false;
  int64_t extraBytes = 0;
  int64_t storeExtraBytes = 0;
};

class PriceTable {
public:
  explicit PriceTable(ReshardPlanner &planner) : planner(planner) {}

  const PairPrice &get(const TensorShape &shape, const Layout &from,
                       const Layout &to);

private:
  struct Key {
    const TensorShape *shape;
    Layout from, to;
    bool operator==(const Key &other) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key &key) const {
      return llvm::hash_combine(key.shape, key.from, key.to);
    }
  };
  const TensorShape *intern(const TensorShape &shape);

  ReshardPlanner &planner;
  std::deque<TensorShape> shapes;
  const TensorShape *latest = nullptr;
  std::unordered_map<Key, PairPrice, KeyHash> table;
};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_PRICES_H
