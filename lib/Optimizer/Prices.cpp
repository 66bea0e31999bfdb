//===- Prices.cpp - Memoised prices of reshards ----------------*- C++ -*-===//

#include "Prices.h"

using namespace shardc;

const TensorShape *PriceTable::intern(const TensorShape &shape) {
  if (latest && *latest == shape)
    return latest;
  for (const TensorShape &known : shapes)
    if (known == shape)
      return latest = &known;
  shapes.push_back(shape);
  return latest = &shapes.back();
}

const PairPrice &PriceTable::get(const TensorShape &shape, const Layout &from,
                                 const Layout &to) {
  auto [it, isNew] = table.try_emplace({intern(shape), from, to});
  if (!isNew)
    return it->second;
  if (const ReshardPlan *plan = planner.plan(shape, from, to)) {
    it->second.picoseconds = plan->picoseconds;
    ReshardMemory memory = memoryOf(*plan);
    it->second.isFree = !memory.moves;
    it->second.extraBytes = memory.extraBytes();
    it->second.storeExtraBytes = memory.storeExtraBytes();
  }
  return it->second;
}
